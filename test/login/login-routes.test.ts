import Fastify from 'fastify'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { AttributionCookie } from '../../src/login/attribution-cookie.ts'
import type { LoginDependencies } from '../../src/login/login-dependencies.ts'
import { loginRoutes } from '../../src/login/login-routes.ts'
import { played } from '../support/login/played.ts'

const LINK = {
  sidc: '0f8fad5b-d9cb-469f-a165-70867728950e',
  utm_campaign: 'spring',
  utm_medium: 'affiliate',
  utm_source: 'CU12345',
}
const OTHER = { ...LINK, utm_source: 'CU67890' }
const COMPLETE = String(new URLSearchParams(LINK))
const PARTIAL = 'sidc=x&utm_source=CU1'
const NAVIGATION = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }

/** The routes over parts that a test plays. Every login that is begun fails at the provider, which is what is redirected to. */
async function routes(t: Test, ttlMs = 60_000) {
  const world: Record<string, (...args: unknown[]) => unknown> = {
    start: () => ({
      ticket: { key: 'key', cookie: { name: 'login', value: 'value', state: 'state' }, transaction: {} },
      stale: [],
    }),
    allows: () => true,
    url: () => ({ is: 'ready', url: new URL('https://provider.test/auth') }),
  }
  const { calls, now, part } = played(world)
  const secrets = new Changeable(['the secret of a test, of thirty-two bytes'])
  const attributionCookie = new AttributionCookie({ prefix: '__Host-', secure: true }, secrets, ttlMs)
  const deps = {
    publicUrl: 'http://localhost:3000',
    config: { frontendUrl: 'https://page.test' },
    guard: { requireNavigation: now('navigation'), isListed: () => false },
    metrics: { attributionLinks: { inc: now('link') }, attributionNotes: { inc: now('note') } },
    attributionCookie,
    startLimit: { allows: part('allows') },
    transactions: { start: part('start'), attributes: () => ({}) },
    provider: { openId: undefined, authorizationUrl: part('url') },
    sessions: { cookie: { key: () => undefined } },
  }
  const fastify = Fastify({ exposeHeadRoutes: false })
  t.teardown(() => fastify.close())
  fastify.addHook('onRequest', async (request, reply) => {
    Object.assign(request, { query: { text: request.url.split('?')[1] ?? '' } })
    reply.setCookie = (...args: unknown[]) => (calls.push(['cookie', ...args]), reply)
  })
  await fastify.register(async (scope) => loginRoutes(scope, deps as unknown as LoginDependencies))
  const ask = async (url: string, headers: object = {}, method: 'GET' | 'HEAD' = 'GET') => {
    calls.length = 0
    return fastify.inject({ method, url, headers: { host: 'localhost:3000', ...headers } })
  }
  const has = (what: string): unknown[][] => calls.filter(([each]) => each === what)
  const cookieOf = (link: typeof LINK): string => `${attributionCookie.name}=${attributionCookie.value(link)}`
  return { world, calls, ask, has, cookieOf, attributionCookie }
}

await test('a login or sign-up begins for navigations only, and not under another name of the server', async (t) => {
  const { ask, world, has, calls } = await routes(t)
  for (const [path, flow] of [
    ['/auth/login', 'login'],
    ['/auth/signup', 'signup'],
  ] as const) {
    const { statusCode, headers } = await ask(path)
    t.strictSame([statusCode, headers.location], [303, 'https://provider.test/auth'])
    t.equal(calls[0]?.[0], 'navigation')
    t.match(has('start')[0]?.[2], { flow, attributed: false })
    const elsewhere = await ask(`${path}?a=b`, { host: '127.0.0.1:3000', ...NAVIGATION })
    t.strictSame([elsewhere.statusCode, elsewhere.headers.location], [303, `http://localhost:3000${path}?a=b`])
    t.strictSame(
      calls.map(([what]) => what),
      ['navigation'],
    )
  }
  world['navigation'] = () => {
    throw new Error('planted')
  }
  for (const path of ['/auth/login', '/auth/signup']) {
    t.equal((await ask(path)).statusCode, 500)
    t.equal(calls.length, 1)
  }
})

await test('a complete link goes with its sign-up, is counted, announced and remembered', async (t) => {
  const { ask, has, calls, attributionCookie, cookieOf } = await routes(t)
  const { headers } = await ask(`/auth/signup?${COMPLETE}`, { ...NAVIGATION, cookie: cookieOf(OTHER) })
  t.strictSame(has('link'), [['link', { outcome: 'complete', by: 'navigation' }]])
  t.equal(headers['x-attribution'], 'complete')
  const [[, name, value, attributes] = []] = has('cookie')
  t.equal(name, attributionCookie.name)
  t.strictSame(attributionCookie.read(`${String(name)}=${String(value)}`), LINK)
  t.strictSame(attributes, attributionCookie.attributes())
  t.match(has('start')[0]?.[2], { attributed: true })
  t.match(has('url')[0]?.[1], { signup: LINK })
  t.ok(calls.findIndex(([what]) => what === 'cookie') < calls.findIndex(([what]) => what === 'start'))
  await ask(`/auth/signup?${COMPLETE}`)
  t.strictSame(has('link'), [['link', { outcome: 'complete', by: 'fetch' }]])
})

await test('a link that is not complete sends on what it has, is not remembered, and replaces no other', async (t) => {
  const { ask, has, cookieOf } = await routes(t)
  const { headers } = await ask(`/auth/signup?${PARTIAL}`, { cookie: cookieOf(OTHER) })
  t.not(headers['x-attribution'], 'complete')
  t.match(has('start')[0]?.[2], { attributed: false })
  t.strictSame(Object(has('url')[0]?.[1]).signup, { utm_source: 'CU1' })
  t.strictSame(
    has('cookie').filter(([, name]) => String(name).includes('attribution')),
    [],
  )
})

await test('a sign-up without a link is that of the remembered one', async (t) => {
  const { ask, has, cookieOf } = await routes(t)
  const { headers } = await ask('/auth/signup?return_to=%2F', { cookie: cookieOf(OTHER) })
  t.equal(headers['x-attribution'], 'complete')
  t.strictSame(has('link'), [['link', { outcome: 'none', by: 'fetch' }]], 'the request itself has none')
  t.match(has('start')[0]?.[2], { attributed: true })
  t.strictSame(Object(has('url')[0]?.[1]).signup, OTHER)
  t.not((await ask('/auth/signup')).headers['x-attribution'], 'complete')
  t.strictSame(Object(has('url')[0]?.[1]).signup, {})
})

await test('where links are not remembered, a complete one has no cookie', async (t) => {
  const { ask, has } = await routes(t, 0)
  await ask(`/auth/signup?${COMPLETE}`)
  t.strictSame(
    has('cookie').filter(([, name]) => String(name).includes('attribution')),
    [],
  )
  t.match(has('start')[0]?.[2], { attributed: true })
})

await test('each note on a link is counted once, however many of its values have it', async (t) => {
  const { ask, has } = await routes(t)
  await ask('/auth/signup?utm_source=a+b&utm_campaign=c+d', NAVIGATION)
  t.strictSame(
    has('note').filter(([, labels]) => Object(labels).note === 'plus'),
    [['note', { note: 'plus', by: 'navigation' }]],
  )
})

await test('a link is checked without a sign-up: by its headers, on a page, or as JSON', async (t) => {
  const { ask, calls } = await routes(t)
  const link = '/auth/signup?utm_source=CU%201&utm_campaign=x'
  const head = await ask(link, {}, 'HEAD')
  t.strictSame(JSON.parse(String(head.headers['x-attribution-values'])), { utm_source: 'CU 1', utm_campaign: 'x' })
  t.ok(head.headers['x-attribution'])
  const page = await ask(link.replace('signup', 'signup/check'), { accept: 'text/html,*/*' })
  t.match(page.headers, { 'content-type': /^text\/html/, 'x-attribution': String })
  t.match(page.body, /CU 1/)
  const json = await ask(link.replace('signup', 'signup/check'))
  t.match(json.headers, { 'content-type': /^application\/json/, 'x-attribution': String })
  t.match(JSON.stringify(json.json()), /CU 1/)
  t.strictSame(calls, [], 'nothing is begun or counted')
})

await test('a slash at the end of the address of sign-ups is taken away, and the query stays', async (t) => {
  const { ask, calls } = await routes(t)
  for (const method of ['GET', 'HEAD'] as const) {
    for (const query of ['', '?a=b&c=%zz']) {
      const { statusCode, headers } = await ask(`/auth/signup/${query}`, {}, method)
      t.strictSame([statusCode, headers.location], [308, `/auth/signup${query}`])
    }
  }
  t.strictSame(calls, [])
})
