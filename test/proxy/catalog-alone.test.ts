import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { BODIES } from '../../src/proxy/upstream-bodies.ts'
import { expectedOf, OVERVIEW } from '../support/proxy/expected-endpoints.ts'

await test('the catalog has the endpoints of upstream without the one-time URL, and the overview only with PARTNER_OVERVIEW_PATH', (t) => {
  for (const endpoint of catalog(OVERVIEW)) {
    t.ok(expectedOf(endpoint).length > 0, `${endpoint.method} ${endpoint.path} is expected`)
    for (const [, , credential] of expectedOf(endpoint)) t.equal(endpoint.credential, credential)
    t.ok(endpoint.isShared === undefined || endpoint.credential === 'none', 'a shared endpoint needs no credential')
  }
  t.equal(catalog(OVERVIEW).length, 20)
  t.equal(catalog(undefined).length, 19)
  t.notOk(catalog(OVERVIEW).some(({ path }) => path.includes('otp')))
  t.end()
})

await test('each endpoint has a summary of its own, and names shapes that are described', (t) => {
  const summaries = catalog(OVERVIEW).map(({ summary }) => summary)
  t.equal(new Set(summaries).size, summaries.length)
  for (const { summary, request, response } of catalog(OVERVIEW)) {
    t.match(summary, /^[A-Z][\w ,-]+$/)
    const shapes = typeof response === 'object' ? Object.values(response) : [response]
    for (const shape of [request, ...shapes]) t.ok(shape === undefined || shape in BODIES, summary)
  }
  t.end()
})

await test('what is sent and answered is described for all endpoints but those whose bodies are not documented', (t) => {
  const undocumented = '/applications/v1/markup-statistics'
  for (const { method, path, request, response } of catalog(OVERVIEW)) {
    t.equal(response === undefined, path === undocumented, path)
    const hasBody = method === 'POST' && !path.endsWith('/reset-demo-balance')
    t.equal(request !== undefined, hasBody, path)
  }
  const created = catalog(undefined).find(({ method, path }) => method === 'POST' && path.endsWith('/accounts'))
  t.strictSame(created?.response, { 200: 'ExistingAccount', 201: 'NewAccount' })
  t.end()
})

await test('the kind of a bulk purchase is one of two, to the letter, and only the overview has a rule for its query', (t) => {
  const [bulk, ...more] = catalog(OVERVIEW).filter(({ parameters }) => parameters !== undefined)
  t.equal(more.length, 0)
  for (const kind of ['real', 'demo']) t.ok(bulk?.parameters?.['kind']?.test(kind))
  for (const kind of ['reals', 'areal', 'demox', 'xdemo', 'REAL', ''])
    t.notOk(bulk?.parameters?.['kind']?.test(kind), kind)
  t.strictSame(
    catalog(OVERVIEW).flatMap(({ path, query }) => (query === undefined ? [] : [path])),
    [OVERVIEW],
  )
  t.strictSame(
    catalog(OVERVIEW).flatMap(({ path, isShared }) => (isShared === true ? [path] : [])),
    ['/v1/health'],
  )
  t.end()
})
