import { test } from 'tap'
import { NotStarted } from '../../src/upstream/exchange.ts'
import { NEWER, ok, relayRoutesOf } from '../support/sockets/relay-routes-of.ts'

const status = (code: number) => ({ is: 'answered', response: { status: code, headers: {}, body: '' } })
const asked = (token: string) => ['/trading/v1/options/accounts/VRTC1/otp', `Bearer ${token}`, 'subject:user']

await test('market data has a relay of its own unless browsers share it', async (t) => {
  const own = await relayRoutesOf(t)
  t.same([...own.found.keys()], ['/ws/public', '/ws/trading/:accountId'])
  t.equal(await own.open('/ws/public'), 'public')
  t.same(own.opened, ['/trading/v1/options/ws/public'])
  t.same([...(await relayRoutesOf(t, { isShared: true })).found.keys()], ['/ws/trading/:accountId'])
})

await test('a trading socket takes its permits, counts a call, and opens the one-time URL of its account', async (t) => {
  const { world, opened, trading, logged, wsUrl } = await relayRoutesOf(t)
  t.equal(await trading(), 'demo')
  t.same(logged().slice(0, 6), ['process', 'session', 'count key', asked('token'), 'accepted', 'reread'])
  world.answers = [ok(`${wsUrl}/ws/real`)]
  t.equal(await trading(), 'real')
  world.answers = [ok(`${wsUrl}/other`)]
  t.equal(await trading(), 'trading')
  t.same(opened, ['/demo', '/ws/real', '/other'])
  await t.rejects(trading('not/an/id'), { code: 'not_found' })
})

await test('a trading socket without a permit, a session or a call left is refused before upstream is asked', async (t) => {
  for (const [change, reason] of [
    [{ permits: { process: false, opening: true, session: true } }, 'too_many_relays'],
    [{ permits: { process: true, opening: false, session: true } }, 'too_many_relays'],
    [{ permits: { process: true, opening: true, session: false } }, 'too_many_relays'],
    [
      {
        cookieKey: undefined,
        permits: { process: true, opening: false, session: true },
        authorized: { is: 'anonymous' },
      },
      'login_required',
    ],
    [{ authorized: { is: 'anonymous' } }, 'login_required'],
    [{ verdict: { is: 'refused', retryAfterSeconds: 7 } }, 'rate_limited'],
  ] as const) {
    const { world, trading, logged } = await relayRoutesOf(t)
    Object.assign(world, change)
    t.equal(await trading(), undefined)
    const log = logged()
    t.ok(log.includes(reason), reason)
    t.notOk(log.some(Array.isArray))
    t.notOk(log.includes('a relay could not be opened'))
    const close = log[log.indexOf('returns key') + 1]
    if (reason === 'rate_limited') t.same(close, { code: 4429, reason, retryAfterSeconds: 7 })
  }
})

await test('a refused bearer is renewed once, and a changed session is read again', async (t) => {
  const { world, wsUrl, trading, logged } = await relayRoutesOf(t)
  world.answers = [status(401), ok(`${wsUrl}/demo`)]
  t.equal(await trading(), 'demo')
  t.same(logged().slice(3, 7), [asked('token'), 'renew true', asked('newer'), 'accepted'])
  world.answers = [status(401), status(401)]
  let renewals = 0
  Object.defineProperty(world, 'renewed', {
    get: () => (renewals++ === 0 ? { is: 'authorized', session: NEWER } : { is: 'ended' }),
  })
  t.equal(await trading(), undefined)
  const log = logged()
  t.same(log.slice(3, 7), [asked('token'), 'renew true', asked('newer'), 'renew false'])
  t.ok(log.includes('session_expired'))
})

await test('a one-time URL that upstream refuses, or the budget has no room for, closes the socket with the reason', async (t) => {
  for (const [answer, reason, isAccepted] of [
    [status(404), 'not_found', true],
    [status(500), 'upstream_error', false],
    [{ is: 'overBudget', limited: 'user', retryAfterMs: 10 }, 'upstream_limit', false],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 10 }, 'upstream_budget', false],
  ] as const) {
    const { world, trading, logged } = await relayRoutesOf(t)
    world.answers = [answer]
    t.equal(await trading(), undefined)
    const log = logged()
    t.ok(log.includes(reason), reason)
    t.equal(log.includes('accepted'), isAccepted)
    t.ok(log.includes('returns key'), 'the page may be told when to come back')
    const isLogged = log.includes('no one-time URL for a relay')
    t.equal(isLogged, 'response' in answer)
  }
})

await test('a session that has ended while upstream was opened gets no socket', async (t) => {
  const { world, trading, logged } = await relayRoutesOf(t)
  world.reread = { is: 'none' }
  t.equal(await trading(), undefined)
  t.ok(logged().includes('session_expired'))
})

await test('a request that was not sent because the session has changed is made again for the session as it is', async (t) => {
  const { world, wsUrl, trading, logged } = await relayRoutesOf(t)
  const stale = { is: 'unreachable', cause: Object.create(NotStarted.prototype) as Error }
  world.answers = [stale, ok(`${wsUrl}/demo`)]
  world.reread = { is: 'live', session: NEWER }
  t.equal(await trading(), 'demo')
  t.same(logged().slice(3, 6), [asked('token'), 'reread', asked('newer')])
  world.answers = [stale]
  world.reread = { is: 'none' }
  t.equal(await trading(), undefined)
  const log = logged()
  t.ok(log.includes('session_expired'))
  t.ok(log.includes('unwatched'), 'the watch on the session has begun, and ends')
})
