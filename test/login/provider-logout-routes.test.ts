import Fastify from 'fastify'
import { test, type Test } from 'tap'
import { providerLogoutRoutes } from '../../src/login/provider-logout-routes.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'

const PATH = '/auth/backchannel-logout'
const FORM = 'application/x-www-form-urlencoded'

/** The routes of a server. @param from the addresses of the provider; undefined: it cannot log out sessions */
async function routes(t: Test, from?: readonly string[]) {
  const store = new MemoryStore()
  let opened = 0
  const counted: string[] = []
  const config = {
    frontendUrl: 'https://page.test',
    issuer: 'https://issuer.test',
    clientId: 'client',
    oidc: { backchannel: from && { from } },
  }
  const deps = {
    config,
    store: { openIndex: () => (opened++, store.openIndex()) },
    openId: { keys: {}, metrics: { logouts: { inc: ({ outcome }: { outcome: string }) => counted.push(outcome) } } },
    logouts: {},
    sessions: { subjectTag: () => undefined },
  }
  const fastify = Fastify()
  t.teardown(() => fastify.close())
  await fastify.register((scope) =>
    providerLogoutRoutes(scope, deps as unknown as Parameters<typeof providerLogoutRoutes>[1]),
  )
  const post = (payload: string, type = FORM) =>
    fastify.inject({ method: 'POST', url: PATH, payload, headers: { 'content-type': type } })
  return { fastify, counted, post, opened: () => opened }
}

await test('a browser that has logged out at the provider comes back to the frontend, which is told so', async (t) => {
  const { fastify, opened } = await routes(t)
  const { statusCode, headers } = await fastify.inject('/auth/logged-out?state=x')
  t.strictSame([statusCode, headers.location], [303, 'https://page.test/?logged_out=provider'])
  t.equal((await fastify.inject({ method: 'POST', url: PATH })).statusCode, 404, 'the provider cannot log out')
  t.equal(opened(), 0)
})

await test('what the provider sends is read as it came, up to 16 KiB, and anything else is refused before that', async (t) => {
  const { post, counted, opened } = await routes(t, [])
  t.equal(opened(), 1)
  const malformed = await post('logout_token=no.token')
  t.equal(malformed.statusCode, 400)
  t.match(malformed.json(), { detail: /not a signed JWT/ })
  t.match((await post(`logout_token=${'x'.repeat(16_384 - 13)}`)).json(), { detail: /not a signed JWT/ })
  const long = await post(`logout_token=${'x'.repeat(16_385 - 13)}`)
  t.equal(long.statusCode, 400)
  t.notMatch(long.json(), { detail: /not a signed JWT/ })
  t.equal((await post('{}', 'application/json')).statusCode, 400)
  t.same(counted, ['false', 'false', 'false', 'false'])
})

await test('a server that closes no longer looks who sends logouts', async (t) => {
  const timers = new ManualTimers(t)
  const { fastify } = await routes(t, [])
  await fastify.ready()
  t.strictSame(timers.delays, [0])
  await fastify.close()
  t.strictSame(timers.delays, [])
})
