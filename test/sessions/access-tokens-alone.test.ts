import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { AccessTokens } from '../../src/sessions/access-tokens.ts'
import type { SessionReader } from '../../src/sessions/session-reader.ts'
import type { SessionRepository } from '../../src/sessions/repository.ts'
import type { Session, SessionRecord } from '../../src/sessions/session.ts'
import type { TokenLookup, TokenRenewal } from '../../src/sessions/token-renewal.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const CLIENT = { ip: '203.0.113.9' }
const AWAY = new StoreUnavailable('away')
const DOWN: TokenLookup = { is: 'providerDown', cause: new Error('down'), retryAfterMs: 7 }
const LATE = { is: 'providerDown', cause: { message: 'the token renewal is taking too long' }, retryAfterMs: 1000 }

/** A session whose token is valid for so many ms more. */
function sessionFor(validMs: number, more: Partial<SessionRecord> = {}, sealed = 'sealed'): Session {
  const record = { ...sessionRecord({ tokenExpiresAt: Date.now() + validMs }), ...more }
  return { id: 'id', key: 'key', tag: 'tag', subjectTag: 'whose', sealed, idleEndsAt: Infinity, record }
}

/** Access tokens whose renewals a test plays. The clocks stand. */
function tokens(t: Test) {
  const pass = stoppedClocks(t)
  const renewed = sessionFor(3_600_000, { accessToken: 'new' }, 'another')
  const world = {
    paused: undefined as TokenLookup | undefined,
    renew: async (): Promise<TokenLookup> => ({ is: 'good', session: renewed }),
    recent: undefined as unknown,
    isAccepted: false,
    end: async (): Promise<void> => undefined,
    /** As the cache has the session, and as the store has it. */
    near: sessionFor(0) as Session | undefined,
    stored: sessionFor(0) as Session | undefined,
  }
  const calls: unknown[][] = []
  const renewal = {
    paused: (...args: unknown[]) => (calls.push(['paused', ...args]), world.paused),
    renew: (...args: unknown[]) => (calls.push(['renew', ...args]), world.renew()),
    renewed: {
      recent: async (key: string) => (calls.push(['recent', key]), world.recent),
      isAccepted: () => world.isAccepted,
    },
  }
  const sessions = {
    load: async (id: string) => (calls.push(['load', id]), world.stored),
    end: async (...args: unknown[]) => (calls.push(['end', ...args]), world.end()),
  }
  const reader = { near: { load: async (id: string) => (calls.push(['near', id]), world.near) } }
  const access = new AccessTokens(
    sessions as unknown as SessionRepository,
    reader as unknown as SessionReader,
    renewal as unknown as TokenRenewal,
  )
  const renewals = (): unknown[][] => calls.filter(([what]) => what === 'renew')
  return { pass, access, world, calls, renewals, good: { is: 'good', session: renewed } }
}

await test('a token is good until a tenth of its lifetime before it expires, a minute at most, and always without a refresh token', (t) => {
  const { access } = tokens(t)
  const good = (validMs: number, more: Partial<SessionRecord> = {}): boolean => access.isGood(sessionFor(validMs, more))
  t.same([good(60_001), good(60_000)], [true, false])
  t.same([good(10_001, { tokenLifetimeMs: 100_000 }), good(10_000, { tokenLifetimeMs: 100_000 })], [true, false])
  const { refreshToken: _, ...record } = sessionFor(-1).record
  t.equal(access.isGood({ ...sessionFor(-1), record }), true)
  t.end()
})

await test('a token that lasts for three seconds more is renewed ahead, once, unless that is paused', async (t) => {
  const { access, world, renewals, calls } = tokens(t)
  t.equal(access.renewAhead(sessionFor(2999)), false)
  t.same(calls, [])
  const gate = Promise.withResolvers<TokenLookup>()
  world.renew = () => gate.promise
  const session = sessionFor(3000)
  for (const _ of [1, 2]) t.equal(access.renewAhead(session, CLIENT), true)
  t.strictSame(calls, [
    ['paused', session, { client: CLIENT }],
    ['renew', session, { client: CLIENT }],
  ])
  gate.reject(AWAY)
  await setImmediate()
  world.paused = DOWN
  t.equal(access.renewAhead(session, CLIENT), true)
  t.equal(renewals().length, 1)
})

await test('a renewal gives all who ask meanwhile the same token, and the next one begins anew', async (t) => {
  const { access, world, renewals, good } = tokens(t)
  const session = sessionFor(0)
  const other = sessionFor(0, {}, 'another version')
  t.strictSame(await Promise.all([session, session, other].map((each) => access.renewed(each, CLIENT))), [
    good,
    good,
    good,
  ])
  t.strictSame(renewals(), [
    ['renew', session, { client: CLIENT }],
    ['renew', other, { client: CLIENT }],
  ])
  world.renew = () => Promise.reject(AWAY)
  await t.rejects(access.renewed(session), AWAY)
  world.renew = async () => DOWN
  t.equal(await access.renewed(session), DOWN)
  t.equal(renewals().length, 4)
})

await test('a caller joins a renewal that runs, and starts none while that is paused', async (t) => {
  const { access, world, renewals, good } = tokens(t)
  const session = sessionFor(0)
  const running = access.renewed(session)
  world.paused = DOWN
  t.strictSame(await access.renewed(session), good)
  t.strictSame(await running, good)
  t.equal(await access.renewed(session), DOWN)
  t.equal(renewals().length, 1)
})

await test('without a renewal a token is used for as long as it is valid', async (t) => {
  const { access, world } = tokens(t)
  const [valid, expired] = [sessionFor(1), sessionFor(0)]
  const fault = new TypeError('planted')
  for (const fail of [() => (world.paused = DOWN), () => (world.paused = undefined)]) {
    fail()
    world.renew = async () => DOWN
    t.strictSame(await access.renewed(valid), { is: 'good', session: valid })
    t.equal(await access.renewed(expired), DOWN)
  }
  world.renew = () => Promise.reject(AWAY)
  t.strictSame(await access.renewed(valid), { is: 'good', session: valid })
  await t.rejects(access.renewed(expired), AWAY)
  world.renew = () => Promise.reject(fault)
  await t.rejects(access.renewed(valid), fault)
  world.renew = async () => ({ is: 'ended' })
  t.same(await access.renewed(valid), { is: 'ended' })
})

await test('a caller waits a second for a renewal while the token is valid, else five, counted from its start', async (t) => {
  for (const [validMs, ms, leftMs] of [
    [60_000, 1000, 600],
    [0, 5000, 4600],
  ] as const) {
    const { access, world, pass } = tokens(t)
    world.renew = () => new Promise(() => undefined)
    const session = sessionFor(validMs)
    const expected = validMs > 0 ? { is: 'good', session } : LATE
    for (const [passedMs, waitMs] of [
      [0, ms],
      [400, leftMs],
      [ms, 0],
    ] as const) {
      pass(passedMs)
      const timers = new HeldTimers(t, 'setTimeout', waitMs)
      const renewed = access.renewed(session)
      await setImmediate()
      t.equal(timers.size, 1)
      timers.run()
      t.match(await renewed, expected)
    }
  }
})

await test('after a refusal the token is taken that another call has renewed meanwhile', async (t) => {
  const { access, world, calls } = tokens(t)
  const session = sessionFor(1000)
  for (const [mayRenew, recent, from] of [
    [true, undefined, 'near'],
    [false, undefined, 'near'],
    [true, { isAccepted: true, retryAfterMs: 5 }, 'stored'],
  ] as const) {
    calls.length = 0
    Object.assign(world, { recent, near: undefined, stored: undefined })
    t.same(await access.afterRefusal(session, mayRenew, REQUESTER), { is: 'ended' })
    const current = sessionFor(1000, { accessToken: 'newer' })
    Object.assign(world, { [from]: current })
    t.strictSame(await access.afterRefusal(session, mayRenew, REQUESTER), { is: 'good', session: current })
    const once = [
      ['recent', 'key'],
      [from === 'near' ? 'near' : 'load', 'id'],
    ]
    t.same(calls, [...once, ...once])
  }
})

await test('a refused token is renewed, as the session is now, for the client that asked', async (t) => {
  const { access, world, calls, good } = tokens(t)
  const current = sessionFor(1000, {}, 'another version')
  world.near = current
  t.strictSame(await access.afterRefusal(sessionFor(1000), true, REQUESTER), good)
  const cause = { client: { ip: REQUESTER.client }, isAfterRefusal: true }
  t.strictSame(calls.slice(2), [
    ['paused', current, cause],
    ['renew', current, cause],
  ])
  calls.length = 0
  await access.afterRefusal(sessionFor(1000), true)
  t.strictSame(calls.at(-1), ['renew', current, { client: undefined, isAfterRefusal: true }])
  world.renew = async () => DOWN
  t.equal(await access.afterRefusal(sessionFor(1000), true), DOWN, 'the old one is refused, valid or not')
  world.renew = () => new Promise(() => undefined)
  const timers = new HeldTimers(t, 'setTimeout', 5000)
  const late = access.afterRefusal(sessionFor(1000), true)
  await setImmediate()
  timers.run()
  t.match(await late, LATE)
})

await test('a caller whose token expires while it waits goes on waiting', async (t) => {
  const { access, world, pass, renewals, good } = tokens(t)
  const gate = Promise.withResolvers<TokenLookup>()
  world.renew = () => gate.promise
  const second = new HeldTimers(t, 'setTimeout', 1000)
  const renewed = access.renewed(sessionFor(500))
  await setImmediate()
  pass(1000)
  const rest = new HeldTimers(t, 'setTimeout', 4000)
  second.run()
  await setImmediate()
  t.equal(rest.size, 1)
  gate.resolve(good as TokenLookup)
  t.strictSame(await renewed, good)
  t.equal(renewals().length, 1)
})

await test('a token that was renewed a moment ago, and accepted, is not renewed again', async (t) => {
  for (const [isAcceptedThere, isAcceptedHere] of [
    [true, false],
    [false, true],
  ] as const) {
    const { access, world, renewals } = tokens(t)
    Object.assign(world, { recent: { isAccepted: isAcceptedThere, retryAfterMs: 5 }, isAccepted: isAcceptedHere })
    // Nor does it end the session, if a GET was repeated with it.
    for (const mayRenew of [true, false]) {
      t.strictSame(await access.afterRefusal(sessionFor(1000), mayRenew), { is: 'justRenewed', retryAfterMs: 5 })
    }
    t.same(renewals(), [])
  }
})

await test('where a refused token cannot be replaced, its session ends', async (t) => {
  const { refreshToken: _, ...record } = sessionFor(1000).record
  for (const [session, mayRenew, recent] of [
    [sessionFor(1000), false, undefined],
    [{ ...sessionFor(1000), record }, true, undefined],
    [sessionFor(1000), true, { isAccepted: false, retryAfterMs: 5 }],
  ] as const) {
    const { access, world, calls, renewals } = tokens(t)
    Object.assign(world, { recent, isAccepted: recent === undefined })
    t.same(await access.afterRefusal(session, mayRenew, REQUESTER), { is: 'ended' })
    t.same(renewals(), [])
    t.strictSame(calls.at(-1), ['end', 'key', 'refused', { requester: REQUESTER, subjectTag: 'whose' }])
    world.end = () => Promise.reject(AWAY)
    await t.rejects(access.afterRefusal(session, mayRenew, REQUESTER), AWAY)
  }
})
