import { Validator } from '@seriousme/openapi-schema-validator'
import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { PROBLEM_CODES } from '../../src/problem.ts'
import { apiWorld } from '../support/api-world.ts'

type Operation = {
  operationId: string
  summary: string
  parameters?: { name?: string; in?: string; required?: boolean; $ref?: string }[]
  requestBody?: unknown
  security?: unknown
  responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
}
type Document = {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: { Problem: { properties: { code: { enum: string[] } } } } }
}

await test('/openapi.json describes every route there is, and is valid', async (t) => {
  const { send, world } = await apiWorld(t)
  const answer = await send('GET', '/openapi.json')
  t.equal(answer.status, 200)
  t.match(answer.headers['content-type'], /^application\/json/)
  const document = answer.json as unknown as Document

  await t.test('an independent validator accepts it', async (t) => {
    const result = await new Validator().validate(answer.json)
    t.same(result.errors ?? [], [])
    t.equal(result.valid, true)
    const broken = structuredClone(answer.json)
    delete broken['info']
    t.equal((await new Validator().validate(broken)).valid, false, 'which does find faults')
  })

  t.equal(document.openapi, '3.1.0')
  t.equal(document.servers[0]?.url, world.server.url)
  t.same(document.components.schemas.Problem.properties.code.enum, PROBLEM_CODES)

  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  t.same(described.toSorted(), routes(world.server.app.server.printRoutes({ commonPrefix: false })))
  const operations = Object.values(document.paths).flatMap((each) => Object.values(each))
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)

  for (const { method, path, credential, query, summary } of catalog('/partners/analytics/v1/overview')) {
    const name = `${method} ${path}`
    const operation = document.paths[`/api${path.replaceAll(/:(\w+)/g, '{$1}')}`]?.[method.toLowerCase()]
    t.equal(operation?.summary, summary, name)
    t.equal(operation?.security === undefined, credential === 'none', `${name}: session`)
    t.equal(operation?.requestBody === undefined, method === 'GET', `${name}: body`)
    const parameters = operation?.parameters?.map(({ $ref, name }) => $ref ?? name)
    const ids = [...path.matchAll(/:(\w+)/g)].map(([, id]) => id)
    const dates = query === undefined ? [] : ['start_date', 'end_date']
    t.same(parameters, ['#/components/parameters/Csrf', ...ids, ...dates], `${name}: parameters`)
    t.same(operation?.responses['2XX']?.content?.['*/*']?.schema, {}, 'what upstream answers is open')
    const own = Object.values(operation?.responses ?? {}).map(({ description }) => description)
    for (const code of ['upstream_lost', 'csrf_rejected', ...(credential === 'none' ? [] : ['login_required'])]) {
      t.ok(
        own.some((each) => each.includes(`\`${code}\``)),
        `${name}: ${code}`,
      )
    }
  }
})

/** `METHOD /path/{parameter}` of every route, from Fastify's own drawing of them; OPTIONS is there for preflights only. */
function routes(drawing: string): string[] {
  const path: string[] = []
  const found: string[] = []
  for (const line of drawing.split('\n')) {
    const [, indent = '', segment = '', methods] = /^([│ ]*)[├└]── (.*?)(?: \((.*)\))?$/.exec(line) ?? []
    if (segment === '') continue
    path.length = indent.length / 4
    path.push(segment)
    for (const method of methods?.split(', ') ?? []) {
      if (method !== 'OPTIONS') found.push(`${method} ${path.join('').replaceAll(/:(\w+)/g, '{$1}')}`)
    }
  }
  return found.toSorted()
}
