import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import type { SessionLookup } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { instanceOn, newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { touchesOf } from '../support/sessions/touches.ts'
import { testRedis } from '../support/server/test-server.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'

await test('a session in use costs Redis one EVAL for each step of its idle limit and instance, and no other command', async (t) => {
  // The idle limit moves in steps of 1 s instead of a minute.
  const touches = await touchesOf(t, { sessions: 10, requests: 300, pauseMs: 8, idleSeconds: 10 })
  t.comment(JSON.stringify(touches))
  const { PING: _, ...commands } = touches.commands
  t.same(Object.keys(commands), ['EVAL'])
  t.equal(touches.most, 1)
  t.ok(touches.limits >= 2, 'the limits move')
  // A step may have begun just before, and another end just after.
  t.ok(touches.limits <= Math.ceil(touches.listenedMs / 1000) + 1, 'a limit moves once a step')
})

await test('an idle limit lasts for SESSION_IDLE_SECONDS, at most a step longer, and never past the absolute limit', async (t) => {
  const [idleMs, stepMs] = [600_000, 60_000]
  const store = new MemoryStore()
  const instance = instanceOn(store, idleMs)
  for (const livesMs of [1000, idleMs - 1, idleMs, idleMs + 1, idleMs + stepMs, 3_600_000, 3_612_345]) {
    const before = Date.now()
    const endsAt = before + livesMs
    const id = await newSession(instance, { endsAt })
    await instance.sessions.touch(id, endsAt)
    const idleEndsAt = (await store.read(sessionKey(id)))?.expiresAt ?? 0
    t.ok(idleEndsAt <= endsAt, 'not past the absolute limit')
    t.ok(idleEndsAt >= Math.min(endsAt, before + idleMs), 'no session ends early')
    t.ok(idleEndsAt <= Date.now() + idleMs + stepMs, 'no session ends late')
  }
})

await test('renewed tokens move no idle limit back, although the clock of their instance is behind', async (t) => {
  const store = new MemoryStore()
  const instance = instanceOn(store)
  const { sessions } = instance
  const id = await newSession(instance)
  const before = await sessions.load(id)
  if (before === undefined) throw new Error('no session')
  timeAhead(t)(-120_000)
  const after = await sessions.replace(before, { ...before.record, accessToken: 'another' })
  t.ok(after)
  t.equal((await sessions.load(id))?.idleEndsAt, before.idleEndsAt)
})

function limitOf(found: SessionLookup): number {
  return found.is === 'live' ? found.session.idleEndsAt : 0
}

/** A store that announces no changes, like a Cluster. */
class SilentStore extends MemoryStore {
  override readonly staleMs = 1000 as number

  override onChange(): void {
    // It announces nothing.
  }
}

await test('with a store that announces no changes, an instance reads the idle limit that another one has just moved', async (t) => {
  const store = new SilentStore()
  const [here, there] = [instanceOn(store), instanceOn(store)]
  const id = await newSession(here)
  const before = limitOf(await there.reader.read(there.cookie(id)))
  let moved = before
  // It moves by steps.
  await until(async () => (moved = limitOf(await here.reader.extend(here.cookie(id)))) > before)
  t.equal(limitOf(await there.reader.read(there.cookie(id))), moved)
})

await test('while Redis takes no writes requests succeed, and not every one of them tries a touch', async (t) => {
  const redis = await testRedis(t)
  const { store } = await sessionInstance(t, redis.url)
  const instance = instanceOn(store, 600_000)
  const id = await newSession(instance)
  await instance.reader.use(instance.cookie(id))
  // An instance with a longer idle limit owes the session a touch at once. Redis refuses writes without a replica.
  const demanding = instanceOn(store, 1_200_000)
  await askRedis(redis, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
  await askRedis(redis, ['CONFIG', 'RESETSTAT'])
  for (let request = 0; request < 50; request++) {
    const found = await demanding.reader.use(demanding.cookie(id))
    t.equal(found.is, 'live')
    await store.read('something else')
  }
  const extended = await demanding.reader.extend(demanding.cookie(id))
  t.equal(extended.is, 'storeDown', 'a request that only moves the limit does not succeed')
  const stats = String(await askRedis(redis, ['INFO', 'commandstats']))
  const tries = Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1])
  t.ok(tries >= 1 && tries < 10, `${tries} tries`)
  t.match(await store.read(sessionKey(id)), { value: String }, 'the link is up')
})

/** A store that can refuse to move limits. */
class StubbornStore extends MemoryStore {
  isStubborn = true

  override extend(...args: Parameters<MemoryStore['extend']>): ReturnType<MemoryStore['extend']> {
    return this.isStubborn ? Promise.reject(new StoreUnavailable(new Error('no'))) : super.extend(...args)
  }
}

await test('idle limits move again a second after one could not, although the clock of the store was set back meanwhile', async (t) => {
  const store = new StubbornStore()
  const instance = instanceOn(store)
  const { reader, sessions, cookie } = instance
  const setTime = timeAhead(t)
  const setAhead = clockAhead(t)
  /** Uses a new session once its idle limit is due. Returns whether that has moved it. */
  const isMoved = async (): Promise<boolean> => {
    const id = await newSession(instance)
    await reader.read(cookie(id))
    const before = (await sessions.load(id))?.idleEndsAt
    setTime(120_000)
    await reader.use(cookie(id))
    await setImmediate()
    await reader.use(cookie(id))
    await setImmediate()
    return (await sessions.load(id))?.idleEndsAt !== before
  }
  setTime(0)
  t.equal(await isMoved(), false)
  store.isStubborn = false
  setTime(-3_600_000)
  setAhead(1000)
  t.equal(await isMoved(), true)
})
