import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { PROBLEM_CODES } from '../../src/problem.ts'
import { responseOf, type OpenApi } from '../support/openapi/document.ts'
import { startWorld, API } from '../support/world.ts'

/** Redirects to another route, so the document leaves them out. */
const ALIASES = ['GET /auth/signup/', 'HEAD /auth/signup/']

await test('/openapi.json describes every route there is', async (t) => {
  const { send, server } = await startWorld(t, API)
  const answer = await send('GET', '/openapi.json')
  t.equal(answer.status, 200)
  t.match(answer.headers['content-type'], /^application\/json/)
  t.equal((await send('GET', '/openapi.json')).text, answer.text)
  const document = answer.json as unknown as OpenApi

  t.equal(document.openapi, '3.1.0')
  t.equal(document.servers[0]?.url, server.url)
  t.match(document.components.schemas['Problem'], { properties: { code: { enum: PROBLEM_CODES } } })

  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  t.same([...described, ...ALIASES].toSorted(), routes(server.app.server.printRoutes({ commonPrefix: false })))
  const operations = Object.values(document.paths).flatMap((each) => Object.values(each))
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)

  for (const { method, path, credential, query, summary } of catalog('/partners/analytics/v1/overview')) {
    const name = `${method} ${path}`
    const described = `/api${path.replaceAll(/:(\w+)/g, '{$1}')}`
    const operation = document.paths[described]?.[method.toLowerCase()]
    t.equal(operation?.summary, summary, name)
    const session = credential === 'none' ? {} : { session: [] }
    t.same(operation?.security, [{ csrf: [], ...session }], `${name}: session`)
    t.equal(operation?.requestBody === undefined, method === 'GET', `${name}: body`)
    const parameters = operation?.parameters?.map(({ $ref, name }) => $ref?.split('/').at(-1) ?? name)
    const ids = [...path.matchAll(/:(\w+)/g)].map(([, id]) => id)
    const dates = query === undefined ? [] : ['start_date', 'end_date']
    const key = method === 'GET' ? [] : ['IdempotencyKey']
    t.same(parameters, [...key, ...ids, ...dates], `${name}: parameters`)
    const says = (status: number, text: string): void => {
      const { description = '' } = responseOf(document, method, described, status) ?? {}
      t.match(description, text, `${name}: ${status}`)
    }
    says(502, '`upstream_lost`')
    says(403, '`csrf_rejected`')
    says(403, 'The refusal of the trading service')
    says(418, 'The refusal of the trading service')
    says(507, '`upstream_error`')
    if (credential !== 'none') says(401, '`login_required`')
    if (method !== 'GET') says(503, '`orders_paused`')
    // The server keeps upstream's 401 to a session's token to itself.
    const on401 = responseOf(document, method, described, 401)?.description ?? ''
    t.equal(on401.includes('The refusal'), credential !== 'bearer', `${name}: 401`)
    t.equal(on401 !== '' && JSON.stringify(operation).includes('credential_renewed'), credential === 'bearer', name)
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
