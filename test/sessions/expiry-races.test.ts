import { test, type Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'
import { instanceOn, newSession, type SessionInstance } from '../support/sessions/session-instance.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'

const IDLE_MS = 600_000
const MINUTE_MS = 60_000

/** What instances record and tell of ends. */
function endsAt(instances: readonly SessionInstance[]): string[] {
  const ends: string[] = []
  for (const { sessions } of instances) {
    sessions.endings.onRecord(({ reason }) => void ends.push(`recorded ${reason}`))
    sessions.endings.onEnd(({ reason }) => void ends.push(`told ${reason}`))
  }
  return ends
}

/** A store that reports no change, as a Cluster. */
function untracked(store: MemoryStore): Store {
  return new Proxy<Store>(store, {
    get(target, name) {
      if (name === 'staleMs') return 1000
      if (name === 'onChange') return () => undefined
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

/** Two instances that have both seen a session, and hear nothing of each other. */
async function twoUntracked(t: Test) {
  const step = stoppedClocks(t)
  // A look at the clocks now and then, or all that is cached would count as unheard after a standstill.
  const pass = (ms: number): void => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 400) {
      step(400)
      standstill.now()
    }
  }
  const store = new MemoryStore()
  const [one, other] = [instanceOn(untracked(store), IDLE_MS), instanceOn(untracked(store), IDLE_MS)]
  const ends = endsAt([one, other])
  const id = await newSession(one)
  const find = async (at: SessionInstance): Promise<string> => (await at.reader.use(at.cookie(id))).is
  t.same([await find(one), await find(other)], ['live', 'live'])
  return { pass, one, other, ends, find, key: sessionKey(id) }
}

await test('a session whose idle limit another instance moves at the last moment has not ended', async (t) => {
  const redis = await testRedis(t)
  const [one, other] = [
    instanceOn(await connectedStore(t, redis.url), IDLE_MS),
    instanceOn(await connectedStore(t, redis.url), IDLE_MS),
  ]
  const ends = endsAt([one, other])
  const id = await newSession(one)
  const found = await other.reader.read(other.cookie(id))
  if (found.is !== 'live') throw new Error('not live')
  const changes: number[] = []
  const heard = (end: number): void => void changes.push(end)
  other.endings.watch(found.session, {
    isUse: false,
    onChange: ({ idleEndsAt }) => heard(idleEndsAt),
    onEnd: () => heard(0),
  })
  timeAhead(t)(IDLE_MS - 100)
  await one.sessions.touch(id, found.session.record.endsAt)
  await until(() => changes.length > 0)
  t.same([ends, changes.includes(0)], [[], false])
})

await test('a session that an operator has ended does not end again as idle where it was seen before', async (t) => {
  const { pass, one, other, ends, find, key } = await twoUntracked(t)
  await one.sessions.end(key, 'revoked')
  ends.length = 0
  pass(IDLE_MS + MINUTE_MS)
  t.equal(await find(other), 'none')
  await until(async () => true)
  t.same(ends, [])
})

await test('instances that find an idle session gone one after the other record that once, however late', async (t) => {
  const { pass, one, other, ends, find } = await twoUntracked(t)
  pass(IDLE_MS + MINUTE_MS)
  t.equal(await find(one), 'none')
  await until(() => ends.length > 0)
  pass(10 * MINUTE_MS)
  t.equal(await find(other), 'none')
  await until(async () => true)
  t.same(ends, ['told idle', 'recorded idle'])
})

await test('a session that changes in its last moments has not ended yet', async (t) => {
  const pass = stoppedClocks(t)
  const store = new MemoryStore()
  const instance = instanceOn(store, IDLE_MS)
  const ends = endsAt([instance])
  const id = await newSession(instance)
  const found = await instance.reader.read(instance.cookie(id))
  if (found.is !== 'live') throw new Error('not live')
  const { session } = found
  for (const [moreMs, ended] of [
    [IDLE_MS - 100, []],
    [100, ['told idle', 'recorded idle']],
  ] as const) {
    pass(moreMs)
    await instance.sessions.replace(session, session.record)
    await instance.sessions.endings.recordExpiry(session)
    t.same(ends, ended, `after ${moreMs} ms`)
  }
})
