import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { EndReason } from '../../src/sessions/endings.ts'
import { sessionKey, besideKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { lossyStore } from '../support/sessions/lossy-store.ts'
import { instanceOn, newSession } from '../support/sessions/session-instance.ts'
import { until } from '../support/time/until.ts'

interface Recorded {
  readonly at: string
  readonly reason: EndReason
  readonly token: string | undefined
}

/** Longer than an instance waits before it tries again. */
const LATER_MS = 600

/** Two instances on one store, of which each may lose replies. */
function twoInstances() {
  const shared = new MemoryStore()
  const recorded: Recorded[] = []
  const instance = (at: string) => {
    const lossy = lossyStore(shared)
    const own = instanceOn(lossy.store)
    own.sessions.endings.onRecord(
      ({ reason, record }) => void recorded.push({ at, reason, token: record?.accessToken }),
    )
    return { ...own, lossy }
  }
  return { shared, recorded, one: instance('one'), other: instance('other') }
}

const CAUSES = ['logout', 'replaced', 'refused', 'revoked'] as const

for (const reason of CAUSES) {
  await test(`an end (${reason}) whose reply was lost is recorded once, by the instance that asked for it`, async (t) => {
    const { recorded, one, other } = twoInstances()
    const key = sessionKey(await newSession(one))
    one.lossy.lose('bury', 'unheard')
    await t.rejects(one.sessions.end(key, reason), StoreUnavailable)
    await until(() => recorded.length > 0)
    t.same(recorded, [{ at: 'one', reason, token: undefined }])
    t.equal(await other.sessions.end(key, 'logout'), false, 'it is recorded')
    t.equal(recorded.length, 1)
  })

  await test(`an end (${reason}) of which its instance never hears is recorded by whoever logs out with the cookie, with the true reason`, async (t) => {
    const { recorded, one, other } = twoInstances()
    const id = await newSession(one)
    one.lossy.lose('bury', 'unheard')
    one.lossy.hold(
      'bury',
      Promise.resolve().then(() => void (one.lossy.isAway = true)),
    )
    await t.rejects(one.sessions.endById(id, reason, true), StoreUnavailable)
    t.match(await other.sessions.endById(id, 'logout', true), { accessToken: 'token' }, 'only the cookie opens it')
    t.same(recorded, [{ at: 'other', reason, token: 'token' }])
    one.lossy.isAway = false
    await delay(LATER_MS)
    t.equal(recorded.length, 1, 'the first one finds that it was recorded')
    t.equal(await one.sessions.endById(id, 'logout', true), undefined)
    t.equal(recorded.length, 1)
  })
}

await test('an end that was never made is not recorded, and the session goes on', async (t) => {
  const { recorded, one } = twoInstances()
  const id = await newSession(one)
  one.lossy.lose('bury', 'unsent')
  await t.rejects(one.sessions.endById(id, 'logout', true), StoreUnavailable)
  await delay(LATER_MS)
  t.same(recorded, [])
  t.match(await one.sessions.load(id), { id })
})

for (const loss of ['unheard', 'unsent'] as const) {
  await test(`when the name of the recorder is ${loss}, the end is recorded once, whoever repeats the logout meanwhile`, async (t) => {
    const { recorded, one, other } = twoInstances()
    const id = await newSession(one)
    one.lossy.lose('replace', loss)
    t.match(await one.sessions.endById(id, 'logout', true), { accessToken: 'token' }, 'it has ended all the same')
    await other.sessions.endById(id, 'logout', true)
    await until(() => recorded.length > 0)
    await delay(LATER_MS)
    t.same(recorded, [{ at: loss === 'unheard' ? 'one' : 'other', reason: 'logout', token: 'token' }])
  })
}

await test('of two instances that end a session at once, and of one that is merely slow, one records it', async (t) => {
  const { recorded, one, other } = twoInstances()
  const ids = [await newSession(one), await newSession(one)] as const
  await Promise.all([one, other].map(({ sessions }) => sessions.endById(ids[0], 'logout', true)))
  t.equal(recorded.length, 1)
  const gate = Promise.withResolvers<void>()
  one.lossy.hold('bury', gate.promise)
  const slow = one.sessions.end(sessionKey(ids[1]), 'refused')
  t.equal(await other.sessions.end(sessionKey(ids[1]), 'logout'), true)
  gate.resolve()
  t.equal(await slow, false, 'the other one has recorded it')
  t.same(
    recorded.slice(1).map(({ at, reason }) => [at, reason]),
    [['other', 'refused']],
  )
})

await test('what is left of a session is no session, opens with its id only, and is gone once its end is recorded', async (t) => {
  const { shared, recorded, one, other } = twoInstances()
  const id = await newSession(one)
  const key = sessionKey(id)
  one.lossy.lose('bury', 'unheard')
  one.lossy.hold(
    'bury',
    Promise.resolve().then(() => void (one.lossy.isAway = true)),
  )
  await t.rejects(one.sessions.end(key, 'logout'), StoreUnavailable)
  t.match(await shared.readUntracked(besideKey(key, 'left')), { value: /^logout v1\./ })
  t.equal(await other.sessions.load(id), undefined)
  t.equal((await other.reader.read(other.cookie(id))).is, 'none')
  t.equal(await other.sessions.touch(id, Date.now() + 60_000), undefined)
  t.equal(await other.sessions.end(key, 'logout'), true)
  t.same(recorded, [{ at: 'other', reason: 'logout', token: undefined }], 'without the id no token is known')
  await until(async () => (await shared.readUntracked(besideKey(key, 'left'))) === undefined)
})

for (const loss of ['unheard', 'unsent'] as const) {
  await test(`an expiry whose marker is ${loss} is recorded once`, async (t) => {
    const { shared, recorded, one, other } = twoInstances()
    const id = await newSession(one, { endsAt: Date.now() + 300 })
    const found = await Promise.all([one, other].map(({ sessions }) => sessions.load(id)))
    await until(async () => (await shared.read(sessionKey(id))) === undefined)
    one.lossy.lose('lock', loss)
    const [own, foreign] = found
    if (own === undefined || foreign === undefined) throw new Error('no session')
    await one.sessions.endings.recordExpiry(own)
    await other.sessions.endings.recordExpiry(foreign)
    await until(() => recorded.length > 0)
    await delay(LATER_MS)
    t.same(
      recorded.map(({ at, reason }) => [at, reason]),
      [[loss === 'unheard' ? 'one' : 'other', 'expired']],
    )
  })
}
