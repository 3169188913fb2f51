import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { AccessTokens } from '../../src/sessions/access-tokens.ts'
import { SAVE_MS } from '../../src/sessions/repository.ts'
import type { SessionReader } from '../../src/sessions/session-reader.ts'
import type { Session } from '../../src/sessions/session.ts'
import { partKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { until } from '../support/time/until.ts'
import { held, json, tokens } from '../support/login/token-endpoint.ts'
import { tokenWorld } from '../support/login/token-world.ts'
import { renewing } from '../support/sessions/held-renewal.ts'

await test('a renewed token is not used before it stands in the store', async (t) => {
  const { here, there, session, sessions, store, endpoint } = await tokenWorld(t)
  endpoint.behaviour = tokens({ access_token: 'second' })
  const stored = async (id: string): Promise<string | undefined> => (await sessions.load(id))?.record.accessToken
  for (const renew of [(old: Session) => here.renewed(old), (old: Session) => here.afterRefusal(old, true)]) {
    const old = await session(0)
    const saving = Promise.withResolvers<void>()
    store.gate = saving.promise
    store.replaces = 0
    const lookup = renew(old)
    const atResult = lookup.then(() => stored(old.id))
    await until(() => store.replaces > 0, 'the new token is being saved')
    // The renewal shares its result with every request of the session, in this instance and in others.
    const shared = [here.renewed(old), there.renewed(old)]
    t.equal(await Promise.race([lookup, ...shared, delay(300, 'pending')]), 'pending')
    t.equal(await stored(old.id), 'first')
    saving.resolve()
    for (const renewed of await Promise.all([lookup, ...shared])) {
      t.equal(renewed.is === 'good' && renewed.session.record.accessToken, 'second')
    }
    t.equal(await atResult, 'second', 'the store has the token when its first user gets it')
  }
})

await test('a renewed token that cannot be saved is not used', async (t) => {
  const { here, session, store, endpoint } = await tokenWorld(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: 'second' })
  store.gate = Promise.reject(new Error('a broken write'))
  store.gate.catch(() => undefined)
  await t.rejects(here.renewed(old), { message: 'a broken write' })
})

await test('a session that ends during its renewal stays ended, and the new tokens are revoked', async (t) => {
  const { here, session, sessions, endpoint } = await tokenWorld(t)
  const old = await session(0)
  const waiting = held(tokens({ access_token: 'second', refresh_token: 'refresh-2' }))
  endpoint.behaviour = waiting.behaviour
  const renewing = here.renewed(old)
  await waiting.asked
  await sessions.end(old.key, 'logout')
  waiting.release()
  t.match(await renewing, { is: 'ended' })
  t.equal(await sessions.load(old.id), undefined)
  await until(() => endpoint.revoked.length >= 2, 'the tokens are revoked')
  t.same(endpoint.revoked.toSorted(), ['refresh-2', 'second'])
})

await test('a session that another instance renews meanwhile keeps the tokens of that instance', async (t) => {
  const { here, session, sessions, endpoint } = await tokenWorld(t)
  const old = await session(0)
  for (const response of [
    tokens({ access_token: 'too-late', refresh_token: 'refresh-1' }),
    json({ error: 'invalid_grant' }, 400),
  ]) {
    const current = await sessions.load(old.id)
    if (current === undefined) return t.fail('no session')
    const waiting = held(response)
    endpoint.behaviour = waiting.behaviour
    const renewing = here.afterRefusal(current, true)
    await waiting.asked
    // Another instance took the lock over from a holder that had stalled.
    const accessToken = `newer than ${current.record.accessToken}`
    await sessions.replace(current, { ...current.record, accessToken })
    waiting.release()
    const lookup = await renewing
    t.equal(lookup.is === 'good' && lookup.session.record.accessToken, accessToken)
  }
  t.same(endpoint.revoked, [], 'no token is revoked that the session may still use')
})

await test('new tokens that could not be saved in time are saved when the store is back, and nobody asks the provider before', async (t) => {
  for (const ends of [false, true]) {
    const { renewal, session, sessions, store, calls, pass, comeBack } = await renewing(t)
    const replace = store.replace.bind(store)
    store.replace = async () => {
      pass(SAVE_MS)
      throw new StoreUnavailable('away')
    }
    await t.rejects(renewal.renew(session, {}), StoreUnavailable)
    const lock = partKey(session.key, 'refresh')
    t.ok(await store.read(lock), 'no other instance renews the old ones')
    store.replace = replace
    if (ends) await sessions.end(session.key, 'logout')
    const later = renewal.renew(session, {})
    comeBack()
    if (ends) t.match(await later, { is: 'ended' })
    else t.match(await later, { is: 'good', session: { record: { accessToken: 'new', refreshToken: 'new refresh' } } })
    await until(async () => (await store.read(lock)) === undefined, 'the lock is released')
    t.same(
      calls.map(([what]) => what),
      ends ? ['refresh', 'revoke'] : ['refresh'],
    )
  }
})

await test('new tokens are kept for as long as their session lives, saved once, and revoked once if it has ended meanwhile', async (t) => {
  for (const ends of [false, true]) {
    const { renewal, session, sessions, store, calls, pass, comeBack } = await renewing(t)
    const [replace, removeIf] = [store.replace.bind(store), store.removeIf.bind(store)]
    const away = async () => {
      pass(SAVE_MS)
      throw new StoreUnavailable('away')
    }
    store.replace = away
    store.removeIf = away
    await t.rejects(renewal.renew(session, {}), StoreUnavailable)
    pass(session.record.endsAt - Date.now() - 60_000)
    let [saves, releases] = [0, 0]
    store.replace = (...change) => ((saves += Number(change[0] === session.key)), replace(...change))
    // The lock is at another master of a Cluster, which is away for longer.
    store.removeIf = async (...lock) => (releases++ < 2 ? away() : removeIf(...lock))
    if (ends) await sessions.end(session.key, 'logout')
    await until(async () => (comeBack(), releases > 2), 'the lock is released')
    const saved = await sessions.load(session.id)
    t.equal(saved?.record.accessToken, ends ? undefined : 'new')
    t.equal(saves, 1)
    t.same(
      calls.map(([what]) => what),
      ends ? ['refresh', 'revoke'] : ['refresh'],
    )
  }
})

await test('a server that ends waits until new tokens are saved that could not be saved in time', async (t) => {
  const { renewal, session, sessions, store, pass, comeBack } = await renewing(t)
  const replace = store.replace.bind(store)
  store.replace = async () => {
    pass(SAVE_MS)
    throw new StoreUnavailable('away')
  }
  await t.rejects(renewal.renew(session, {}), StoreUnavailable)
  const ending = new AccessTokens(sessions, undefined as unknown as SessionReader, renewal).close()
  t.equal(await Promise.race([ending, delay(300, 'waits')]), 'waits')
  store.replace = replace
  comeBack()
  await ending
  t.equal((await sessions.load(session.id))?.record.accessToken, 'new')
})
