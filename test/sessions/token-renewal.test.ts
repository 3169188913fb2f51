import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { ProviderRefusal } from '../../src/oauth/grant-outcome.ts'
import { refusalSource } from '../../src/sessions/session.ts'
import { besideKey, partKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { granted, renewing } from '../support/sessions/held-renewal.ts'
import { until } from '../support/time/until.ts'

const CLIENT = { ip: '203.0.113.9' }
const AWAY = new StoreUnavailable('away')
const down = (code: 'provider_unavailable' | 'login_failed' = 'provider_unavailable') =>
  ({ is: code === 'login_failed' ? 'refused' : 'unavailable', code, cause: new Error(`down: ${code}`) }) as const
const refused = (error: string, code = error) => ({ is: 'refused', code, cause: new ProviderRefusal(error) }) as const

await test('a renewal asks the provider once, under a lock that it releases, and saves what it gets', async (t) => {
  const { renewal, session, sessions, calls, store, lines, counted } = await renewing(t)
  const locks: unknown[] = []
  const lock = store.lock.bind(store)
  store.lock = async (...args) => (locks.push(args), lock(...args))
  const renewed = await renewal.renew(session, { client: CLIENT })
  t.match(renewed, { is: 'good', session: { id: 'id', record: { accessToken: 'new', refreshToken: 'new refresh' } } })
  t.strictSame(renewed.is === 'good' && renewed.session, await sessions.load('id'))
  t.notOk(renewed.is === 'good' && 'isAfterRefusal' in renewed.session.record)
  t.strictSame(calls, [['refresh', 'refresh', refusalSource(session, CLIENT.ip), 'sub']])
  t.match(locks, [[partKey(session.key, 'refresh'), /^[\w-]{36}$/, Number]])
  t.equal(await store.read(partKey(session.key, 'refresh')), undefined)
  t.equal(await store.read(besideKey(session.key, 'renewed')), undefined)
  t.match(lines, [['info', { audit: 'token_refreshed', session: session.tag, subject: session.subjectTag }]])
  t.equal(lines.length, 1)
  t.same(counted, ['granted'])
})

await test('a provider that does not rotate refresh tokens leaves the old one, and one that names no lifetime is noted', async (t) => {
  const { renewal, session, world, lines } = await renewing(t)
  const { refreshToken: _, ...grant } = granted().grant
  world.refresh = async () => ({ is: 'granted', grant: { ...grant, lifetimeGuessed: true } })
  t.match(await renewal.renew(session, {}), { session: { record: { refreshToken: 'refresh' } } })
  t.match(lines.at(-1), ['warn', {}, 'the provider named no usable expires_in'])
})

await test('a session that has changed or ended, or has no refresh token, is not renewed', async (t) => {
  const { renewal, session, sessions, calls } = await renewing(t)
  const changed = await sessions.replace(session, { ...session.record, accessToken: 'newer' })
  t.strictSame(await renewal.renew(session, {}), { is: 'good', session: changed })
  const { refreshToken: _, ...record } = session.record
  const last = changed && (await sessions.replace(changed, record))
  t.strictSame(last && (await renewal.renew(last, {})), { is: 'good', session: last })
  await sessions.end(session.key, 'logout')
  t.same(await renewal.renew(session, {}), { is: 'ended' })
  t.same(calls, [])
})

await test('while another instance has the lock, its result is waited for, as long as a lock can last', async (t) => {
  const { renewal, session, sessions, store, calls, pass } = await renewing(t)
  await store.lock(partKey(session.key, 'refresh'), 'another', 36_000_000)
  const theirs = renewal.renew(session, {})
  await setImmediate()
  const changed = await sessions.replace(session, { ...session.record, accessToken: 'newer' })
  t.strictSame(await theirs, { is: 'good', session: changed })
  if (changed === undefined) return t.fail('not replaced')
  let isOver = false
  const never = renewal.renew(changed, {}).finally(() => (isOver = true))
  let loads = 0
  const read = store.read.bind(store)
  store.read = async (key) => (loads++, read(key))
  await until(() => loads > 0, 'it waits')
  t.equal(isOver, false)
  pass(3_600_000)
  t.match(await never, {
    is: 'providerDown',
    cause: { message: 'another process holds the refresh lock' },
    retryAfterMs: 1000,
  })
  t.same(calls, [])
  t.equal((await store.read(partKey(session.key, 'refresh')))?.value, 'another')
})

await test('a lock that could not be released is released once the store is back', async (t) => {
  const { renewal, session, store, comeBack } = await renewing(t)
  const removeIf = store.removeIf.bind(store)
  store.removeIf = () => Promise.reject(AWAY)
  t.match(await renewal.renew(session, {}), { is: 'good' })
  const lock = partKey(session.key, 'refresh')
  t.ok(await store.read(lock))
  store.removeIf = removeIf
  comeBack()
  await until(async () => (await store.read(lock)) === undefined, 'it is released')
})

await test('a renewal after a 401 is marked, in the session and for all instances, once it is saved', async (t) => {
  const { renewal, session, store } = await renewing(t)
  const renewed = await renewal.renew(session, { isAfterRefusal: true })
  t.match(renewed, { is: 'good', session: { record: { accessToken: 'new', isAfterRefusal: true } } })
  t.equal((await store.read(besideKey(session.key, 'renewed')))?.value, 'renewed')
  const other = await renewing(t)
  other.store.lock = (key, ...rest) => {
    return key.endsWith(':renewed')
      ? Promise.reject(AWAY)
      : Object.getPrototypeOf(other.store).lock.call(other.store, key, ...rest)
  }
  t.match(
    await other.renewal.renew(other.session, { isAfterRefusal: true }),
    { is: 'good' },
    'without the mark as well',
  )
})

await test('a session that goes on with other tokens keeps them, and one that has ended has the new ones revoked', async (t) => {
  const { renewal, session, sessions, world, calls, store } = await renewing(t)
  let changed = session
  world.refresh = async () => {
    changed = (await sessions.replace(session, { ...session.record, accessToken: 'newer' })) ?? session
    return granted()
  }
  t.strictSame(await renewal.renew(session, { isAfterRefusal: true }), { is: 'good', session: changed })
  t.equal(await store.read(besideKey(session.key, 'renewed')), undefined)
  world.refresh = async () => {
    await sessions.end(session.key, 'logout')
    return granted()
  }
  t.same(await renewal.renew(changed, {}), { is: 'ended' })
  t.match(calls.at(-1), ['revoke', { accessToken: 'new', refreshToken: 'new refresh' }])
  t.equal(calls.filter(([what]) => what === 'revoke').length, 1)
})

await test('tokens that could not be revoked have a line each, and without a revocation nothing is done', async (t) => {
  const { renewal, world, lines, sessions } = await renewing(t)
  const tokens = { accessToken: 'a', refreshToken: 'r', subject: 'CR1' }
  t.equal(renewal.revoke(tokens), undefined)
  world.revoke = async () => [{ token: 'access_token', status: 500, cause: undefined }]
  await renewal.revoke(tokens, 'tag')
  const subject = sessions.subjectTag('CR1')
  t.match(lines, [
    ['warn', { audit: 'revocation_failed', session: 'tag', subject, token: 'access_token', status: 500 }],
  ])
})

await test('a provider that is down pauses the session, and all others while its circuit is open', async (t) => {
  const { renewal, session, world, lines, counted, skipped, provider } = await renewing(t)
  t.equal(renewal.paused(session, {}), undefined)
  const failure = down()
  world.refresh = async () => failure
  const first = await renewal.renew(session, { client: CLIENT })
  t.match(first, { is: 'providerDown', cause: failure.cause, retryAfterMs: Number })
  t.match(lines.at(-1), ['warn', { code: 'provider_unavailable' }, 'the provider was unavailable for a refresh'])
  t.same(counted, ['unavailable'])
  const retryAfterMs = first.is === 'providerDown' ? first.retryAfterMs : 0
  t.ok(retryAfterMs > 0)
  const paused = renewal.paused(session, {})
  t.match(paused, { is: 'providerDown', cause: failure.cause })
  t.equal(paused?.is === 'providerDown' && Math.round(paused.retryAfterMs), Math.round(retryAfterMs))
  t.same(skipped, ['session'])
  provider.circuit.retryAfterMs = () => 90_000
  t.match(renewal.paused(session, {}), { retryAfterMs: 90_000 })
  t.match(await renewal.renew(session, {}), { retryAfterMs: 90_000 })
  provider.circuit.retryAfterMs = () => 0
  provider.limit.retryAfterMs = (source) => (source === refusalSource(session, CLIENT.ip) ? 95_000 : 0)
  t.match(renewal.paused(session, { client: CLIENT }), { retryAfterMs: 95_000 })
  t.same(skipped, ['session', 'provider', 'provider'])
  provider.limit.retryAfterMs = () => 0
  provider.circuit.workedAt = performance.now() + 1
  t.equal(renewal.paused(session, {}), undefined, 'it has worked for another session since')
})

await test('a failure that concerns the session alone outlasts the work of the provider for others, and a grant ends it', async (t) => {
  const { renewal, session, world, provider } = await renewing(t)
  world.refresh = async () => down('login_failed')
  t.match(await renewal.renew(session, {}), { is: 'providerDown' })
  provider.circuit.workedAt = performance.now() + 1
  t.ok(renewal.paused(session, {}))
  world.refresh = async () => granted()
  const renewed = await renewal.renew(session, {})
  t.equal(renewed.is === 'good' && renewal.paused(renewed.session, {}), undefined)
})

await test('what the provider skips by itself is counted as that, and a busy one is left alone for as long as it asks', async (t) => {
  const { renewal, session, world, skipped, counted, pass, store } = await renewing(t)
  world.refresh = async () => ({ is: 'skipped', retryAfterMs: 1234 })
  t.match(await renewal.renew(session, {}), { is: 'providerDown', retryAfterMs: 1234 })
  t.same([skipped, counted], [['provider'], []])
  world.refresh = async () => ({ is: 'unavailable', code: 'try_later', cause: new Error('busy'), busyForMs: 20_000 })
  t.match(await renewal.renew(session, {}), { is: 'providerDown', retryAfterMs: 20_000 })
  t.match(renewal.paused(session, {}), { retryAfterMs: 20_000 })
  t.ok(await store.read(besideKey(session.key, 'refusal')), 'the other instances know')
  pass(20_000)
  t.equal(renewal.paused(session, {}), undefined)
})

await test('a refused refresh token ends the session, unless it has another by then', async (t) => {
  const { renewal, session, sessions, world, lines, counted } = await renewing(t)
  const outcome = refused('invalid_grant')
  let changed = session
  world.refresh = async () => {
    changed = (await sessions.replace(session, { ...session.record, accessToken: 'newer' })) ?? session
    return outcome
  }
  t.strictSame(await renewal.renew(session, {}), { is: 'good', session: changed })
  world.refresh = async () => outcome
  const ends: unknown[] = []
  sessions.endings.onEnd((ending) => ends.push(ending))
  t.same(await renewal.renew(changed, {}), { is: 'ended' })
  t.match(ends, [{ key: session.key, reason: 'refused', subjectTag: session.subjectTag }])
  const { tag, subjectTag: subject } = session
  t.match(lines.at(-1), ['warn', { audit: 'refresh_refused', session: tag, subject, cause: outcome.cause }])
  t.same(counted, ['invalid_grant', 'invalid_grant'])
})

await test('another refusal pauses the session for half a minute, at every instance, and a grant forgets it', async (t) => {
  const { renewal, session, world, lines, counted, pass, store, calls } = await renewing(t)
  const outcome = refused('access_denied')
  world.refresh = async () => outcome
  t.match(await renewal.renew(session, {}), { is: 'providerDown', cause: outcome.cause, retryAfterMs: 30_000 })
  t.match(renewal.paused(session, {}), { retryAfterMs: 30_000 })
  t.match(lines.at(-1), ['warn', { code: 'access_denied' }, 'the provider refused a refresh'])
  t.same(counted, ['access_denied'])
  t.ok(await store.read(besideKey(session.key, 'refusal')))
  calls.length = 0
  t.match(await renewal.renew(session, {}), { is: 'providerDown' })
  t.same(calls, [], 'the record in the store says so')
  pass(30_000)
  t.equal(renewal.paused(session, {}), undefined)
  world.refresh = async () => granted()
  t.match(await renewal.renew(session, {}), { is: 'good' })
  t.equal(await store.read(besideKey(session.key, 'refusal')), undefined)
})

await test('a refusal of this client, which only an operator can correct, is an error, and no reason to tell the other instances', async (t) => {
  const { renewal, session, world, lines, store } = await renewing(t)
  world.refresh = async () => refused('invalid_client')
  t.match(await renewal.renew(session, {}), { is: 'providerDown' })
  t.match(lines, [['error', { code: 'invalid_client' }, 'the provider refused a refresh']])
  t.equal(await store.read(besideKey(session.key, 'refusal')), undefined)
})

await test('a session that ends, or gets other tokens, while a refused token is renewed is not marked as renewed', async (t) => {
  const ended = await renewing(t)
  ended.world.refresh = async () => (await ended.sessions.end(ended.session.key, 'logout'), granted())
  t.same(await ended.renewal.renew(ended.session, { isAfterRefusal: true }), { is: 'ended' })
  t.equal(await ended.store.read(besideKey(ended.session.key, 'renewed')), undefined)
  const other = await renewing(t)
  const record = { ...other.session.record, accessToken: 'newer' }
  other.world.refresh = async () => (await other.sessions.replace(other.session, record), granted())
  t.match(await other.renewal.renew(other.session, { isAfterRefusal: true }), { is: 'good' })
  t.equal(await other.store.read(besideKey(other.session.key, 'renewed')), undefined)
})
