import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { ProviderRefusal } from '../../src/oauth/grant-outcome.ts'
import { PROVIDER_TIMEOUT_MS } from '../../src/oauth/provider-traffic.ts'
import { SAVE_MS } from '../../src/sessions/repository.ts'
import type { Session } from '../../src/sessions/session.ts'
import { besideKey, partKey, REFRESHES_KEY } from '../../src/store/keys.ts'
import { Unsent } from '../../src/store/links/unsent.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { NO_SPAN, runIn } from '../../src/telemetry/traces/span.ts'
import { standstill } from '../../src/time/standstill.ts'
import { granted, renewing } from '../support/sessions/held-renewal.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const refused = (error: string) => ({ is: 'refused', code: error, cause: new ProviderRefusal(error) }) as const

await test('the lock outlives the slowest refresh and its saving, and is there until both are done', async (t) => {
  const { renewal, session, store, world } = await renewing(t)
  const lasts: unknown[] = []
  const lock = store.lock.bind(store)
  store.lock = async (...args) => (lasts.push(args[2]), lock(...args))
  const held: unknown[] = []
  const note = async (): Promise<void> =>
    void held.push((await store.read(partKey(session.key, 'refresh'))) !== undefined)
  world.refresh = async () => {
    await setImmediate()
    await note()
    return granted()
  }
  const replace = store.replace.bind(store)
  store.replace = async (...args) => {
    await setImmediate()
    await note()
    return replace(...args)
  }
  await renewal.renew(session, {})
  t.same(lasts, [PROVIDER_TIMEOUT_MS + SAVE_MS + 1000])
  t.same(held, [true, true])
})

await test('a lock that was not even asked for is not released, and one whose reply was lost is', async (t) => {
  const { renewal, session, store } = await renewing(t)
  const lock = store.lock.bind(store)
  const released: unknown[] = []
  store.removeIf = async (key) => (released.push(key), true)
  store.lock = () => Promise.reject(new StoreUnavailable(new Unsent('there is no connection')))
  await t.rejects(renewal.renew(session, {}), StoreUnavailable)
  t.same(released, [])
  store.lock = async (...args) => {
    await lock(...args)
    throw new StoreUnavailable('no reply')
  }
  await t.rejects(renewal.renew(session, {}), StoreUnavailable)
  t.same(released, [partKey(session.key, 'refresh')])
})

await test('a process that stood still while it got the lock asks for it again before it refreshes', async (t) => {
  const { renewal, session, store, calls, pass } = await renewing(t)
  let locks = 0
  const lock = store.lock.bind(store)
  store.lock = async (...args) => {
    if (++locks === 1) pass(1000)
    return lock(...args)
  }
  t.match(await renewal.renew(session, {}), { is: 'good' })
  t.same([locks, calls.length], [2, 1])
})

await test('a lock that it got before it stood still is released, although it could not ask for it again', async (t) => {
  const { renewal, session, store, pass } = await renewing(t)
  const lock = store.lock.bind(store)
  store.lock = async (...args) => {
    store.lock = () => Promise.reject(new StoreUnavailable(new Unsent('there is no connection')))
    pass(1000)
    return lock(...args)
  }
  await t.rejects(renewal.renew(session, {}), StoreUnavailable)
  t.equal(await store.read(partKey(session.key, 'refresh')), undefined)
})

await test('while another instance has the lock, it is asked for less and less often', async (t) => {
  const { renewal, session, sessions, store } = await renewing(t)
  const asked: bigint[] = []
  store.lock = async () => (asked.push(process.hrtime.bigint()), false)
  const theirs = renewal.renew(session, {})
  await until(() => asked.length === 4)
  await sessions.end(session.key, 'logout')
  t.same(await theirs, { is: 'ended' })
  const [first = 0n, , , fourth = 0n] = asked
  // 50, 100 and 200 ms, of timers that have come up to a millisecond early.
  t.ok(fourth - first > 345_000_000n, String(fourth - first))
})

await test('a trace has the wait for the lock, up to the lock or to the result of another instance', async (t) => {
  for (const isOwn of [true, false]) {
    const { renewal, session, sessions, store, world } = await renewing(t)
    const told: string[] = []
    const span = { ...NO_SPAN, measure: (name: string) => (told.push(name), () => void told.push('over')) }
    world.refresh = async () => (told.push('refresh'), granted())
    const lock = store.lock.bind(store)
    store.lock = async (...args) => {
      if (isOwn) return lock(...args)
      told.push('taken')
      await sessions.replace(session, { ...session.record, accessToken: 'newer' })
      return false
    }
    await runIn(span, () => renewal.renew(session, {}))
    t.same(told, ['wait for the refresh lock', ...(isOwn ? ['over', 'refresh', 'over'] : ['taken', 'over'])])
  }
})

await test('grants and logins are told to the other instances half a second later', async (t) => {
  for (const happen of [
    async ({ renewal, session }: Awaited<ReturnType<typeof renewing>>) => renewal.renew(session, {}),
    async ({ provider }: Awaited<ReturnType<typeof renewing>>) => provider.onLogin?.(standstill.now()),
  ]) {
    const world = await renewing(t)
    const timers = new HeldTimers(t, 'setTimeout', 500)
    await happen(world)
    t.equal(await world.store.read(REFRESHES_KEY), undefined)
    t.equal(timers.size, 1)
    timers.run()
    await until(async () => (await world.store.read(REFRESHES_KEY)) !== undefined, 'it is told')
  }
})

await test('a renewal that was not refused before removes nothing, and a session without an ID token names no user', async (t) => {
  const { renewal, session, sessions, store, calls } = await renewing(t)
  const removed: string[] = []
  const remove = store.remove.bind(store)
  store.remove = async (key) => (removed.push(key), remove(key))
  const { oidc: _, ...record } = session.record
  const without = await sessions.replace(session, record)
  t.match(without && (await renewal.renew(without, {})), { is: 'good' })
  t.equal(calls[0]?.[3], undefined)
  t.same(removed, [])
})

await test('a renewal after a 401 is over once it is marked', async (t) => {
  const { renewal, session, store } = await renewing(t)
  const gate = Promise.withResolvers<void>()
  let isMarking = false
  const lock = store.lock.bind(store)
  store.lock = async (...args) => {
    if (args[0] === besideKey(session.key, 'renewed')) {
      isMarking = true
      await gate.promise
    }
    return lock(...args)
  }
  let isOver = false
  const renewed = renewal.renew(session, { isAfterRefusal: true }).finally(() => (isOver = true))
  await until(() => isMarking, 'the mark is written')
  await setImmediate()
  t.equal(isOver, false)
  gate.resolve()
  t.match(await renewed, { is: 'good' })
})

await test('a circuit that is open pauses a session that has not failed', async (t) => {
  const { renewal, session, provider } = await renewing(t)
  provider.circuit.retryAfterMs = () => 5
  t.match(renewal.paused(session, {}), { is: 'providerDown', retryAfterMs: 5 })
})

await test('a pause does not outlast a token that is still valid, and then the session is tried again', async (t) => {
  for (const [validMs, pauseMs] of [
    [10_000, 10_000],
    [60_000, 30_000],
    [0, 30_000],
    [-1, 30_000],
  ] as const) {
    const { renewal, session, sessions, world } = await renewing(t)
    world.refresh = async () => refused('invalid_scope')
    const due = await sessions.replace(session, { ...session.record, tokenExpiresAt: Date.now() + validMs })
    if (due === undefined) throw new Error('not replaced')
    t.match(await renewal.renew(due, {}), { is: 'providerDown', retryAfterMs: 30_000 })
    t.match(renewal.paused(due, {}), { retryAfterMs: pauseMs })
  }
})

await test('a refusal ends an expired session that the provider has repeated after it granted another, and three users who are refused are trouble', async (t) => {
  const { renewal, sessions, world, provider, lines, trouble, pass } = await renewing(t)
  world.refresh = async () => refused('login_required')
  const expired = async (subject: string) => {
    await sessions.create(subject, sessionRecord({ subject, tokenExpiresAt: Date.now() }))
    const session = await sessions.load(subject)
    if (session === undefined) throw new Error('not loaded')
    return session
  }
  for (const subject of ['CR1', 'CR2']) t.match(await renewal.renew(await expired(subject), {}), { is: 'providerDown' })
  t.same(trouble, [])
  t.match(await renewal.renew(await expired('CR3'), {}), { is: 'providerDown' })
  t.same(trouble, ['login_required'])
  t.match(lines.at(-1), ['error', { code: 'login_required' }, 'the provider refuses several users, and grants nobody'])
  const session = await expired('CR4')
  t.match(await renewal.renew(session, {}), { is: 'providerDown' })
  pass(30_000)
  provider.onLogin?.(standstill.now())
  t.same(await renewal.renew(session, {}), { is: 'ended' })
  t.equal(await sessions.load('CR4'), undefined)
})

await test('a user for whom the provider is slow takes a quarter of the renewals, and no other user waits for them', async (t) => {
  const { renewal, sessions, world, calls, skipped } = await renewing(t)
  const endsAt = Date.now() + 36_000_000
  const sessionOf = async (subject: string, id: string): Promise<Session> => {
    await sessions.create(id, sessionRecord({ subject, endsAt, tokenExpiresAt: endsAt }))
    const session = await sessions.load(id)
    if (session === undefined) throw new Error('not loaded')
    return session
  }
  const slow = Promise.withResolvers<unknown>()
  world.refresh = () => slow.promise
  const own = await Promise.all(Array.from({ length: 17 }, (_, at) => sessionOf('CR1', `own ${at}`)))
  const renewals = own.map((session) => renewal.renew(session, {}))
  await until(() => calls.length === 16)
  t.match(await Promise.race(renewals), { is: 'providerDown', retryAfterMs: 1000, cause: { message: /of the user/ } })
  t.same(skipped, ['session'])
  world.refresh = async () => granted()
  t.match(await renewal.renew(await sessionOf('CR2', 'other'), {}), { is: 'good' })
  slow.reject(new Error('the provider could not be asked'))
  await Promise.allSettled(renewals)
  t.match(await renewal.renew(await sessionOf('CR1', 'later'), {}), { is: 'good' }, 'their places are free again')
})
