import { test } from 'tap'
import { NearCache } from '../../src/sessions/near-cache.ts'
import type { SessionRepository } from '../../src/sessions/repository.ts'
import type { Session } from '../../src/sessions/session.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import {
  instanceOn,
  newSession,
  sessionInstance,
  sessionRecord,
  type SessionInstance,
} from '../support/sessions/session-instance.ts'
import { testRedis } from '../support/server/test-server.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { within } from '../support/time/until.ts'

const ROUNDS = 200

async function live({ reader, cookie }: SessionInstance, id: string): Promise<Session> {
  const found = await reader.read(cookie(id))
  if (found.is !== 'live') throw new Error('the session is not live')
  return found.session
}

/** Every write that a request in flight may still make to its session. */
async function inFlight({ sessions, reader }: SessionInstance, session: Session): Promise<void> {
  await Promise.all([
    sessions.touch(session.id, session.record.endsAt),
    sessions.replace(session, sessionRecord({ accessToken: 'refreshed' })),
    reader.reload(session.id),
  ])
}

/** Retries the compare-and-set until it succeeds. */
async function addOne(sessions: SessionRepository, id: string): Promise<void> {
  for (;;) {
    const session = await sessions.load(id)
    if (session === undefined) throw new Error('dropped')
    const accessToken = String(Number(session.record.accessToken) + 1)
    if (await sessions.replace(session, { ...session.record, accessToken })) return
  }
}

await test('no request in flight brings an ended session back', async (t) => {
  const redis = await testRedis(t)
  const [one, other] = [await sessionInstance(t, redis.url), await sessionInstance(t, redis.url)]
  let revived = 0
  for (let round = 0; round < ROUNDS; round++) {
    const id = await newSession(one)
    const sessions = [await live(one, id), await live(other, id)] as const
    const late = () => [inFlight(one, sessions[0]), inFlight(other, sessions[1])]
    // The writes come before, during and after the end. The next login of the browser ends the session once more.
    const all = [...late(), one.sessions.end(sessionKey(id), 'logout'), ...late()]
    await Promise.all([...all, newSession(one), other.sessions.end(sessionKey(id), 'replaced')])
    await Promise.all(late())
    for (const { sessions: them, reader } of [one, other]) {
      if ((await them.load(id)) !== undefined || (await reader.reload(id)).is !== 'none') revived++
    }
  }
  t.equal(revived, 0, `${ROUNDS} rounds on two instances`)
})

await test('writes that race with the absolute limit do not prolong a session', async (t) => {
  const redis = await testRedis(t)
  const [one, other] = [await sessionInstance(t, redis.url), await sessionInstance(t, redis.url)]
  const ids = await Promise.all(
    Array.from({ length: ROUNDS }, (_, at) => newSession(one, { endsAt: Date.now() + 2000 + at })),
  )
  const sessions = await Promise.all(ids.map((id) => one.sessions.load(id)))
  await Promise.all(
    sessions.map(async (session) => {
      if (session === undefined) throw new Error('not made')
      while ((await other.sessions.load(session.id)) !== undefined) {
        await Promise.all([
          one.sessions.touch(session.id, session.record.endsAt),
          other.sessions.replace(session, session.record),
        ])
      }
      await Promise.all([
        one.sessions.touch(session.id, session.record.endsAt),
        other.sessions.replace(session, session.record),
      ])
    }),
  )
  for (const id of ids) t.equal(await one.sessions.load(id), undefined)
})

await test('concurrent writers of one session lose no update', async (t) => {
  const redis = await testRedis(t)
  const instances = [await sessionInstance(t, redis.url), await sessionInstance(t, redis.url)]
  const [one] = instances
  if (one === undefined) throw new Error('no instance')
  const id = await newSession(one, { accessToken: '0' })
  const writers = [...instances, ...instances].map(async ({ sessions }) => {
    for (let count = 0; count < 25; count++) await addOne(sessions, id)
  })
  await Promise.all(writers)
  t.equal((await one.sessions.load(id))?.record.accessToken, '100')
})

await test('a watcher is notified of the end of a session after two touches of another instance', async (t) => {
  const redis = await testRedis(t)
  const [holder, other] = [await sessionInstance(t, redis.url), await sessionInstance(t, redis.url)]
  const id = await newSession(other)
  const session = await live(holder, id)
  const ended = new Promise<string>((resolve) => void holder.endings.watch(session, { isUse: true, onEnd: resolve }))
  for (let touch = 1; touch <= 2; touch++) {
    const changed = new Promise<void>((resolve) => {
      holder.store.onChange((key) => key === session.key && resolve())
    })
    await other.store.extend(session.key, session.idleEndsAt + touch * 120_000)
    await within(changed, 'the change is noticed')
    await holder.reader.reload(id)
  }
  await other.sessions.end(session.key, 'logout')
  t.equal(await within(ended, 'a watcher hears of the end'), 'logout')
})

await test('FLUSHALL ends each of 500 watched sessions', async (t) => {
  const redis = await testRedis(t)
  const instance = await sessionInstance(t, redis.url)
  const ids = await Promise.all(Array.from({ length: 500 }, () => newSession(instance)))
  const sessions = await Promise.all(ids.map((id) => live(instance, id)))
  const ends = sessions.map(
    (session) =>
      new Promise<string>((resolve) => void instance.endings.watch(session, { isUse: true, onEnd: resolve })),
  )
  const operator = await storeClient(t, { redis })
  await operator.flushAll()
  t.same(new Set(await Promise.all(ends)), new Set(['gone']))
})

/** A store that announces no changes, like a Cluster. */
class SilentStore extends MemoryStore {
  override readonly staleMs = 100 as number
  fault: Error | undefined

  override onChange(): void {
    // It announces nothing.
  }

  override async read(key: string): ReturnType<MemoryStore['read']> {
    if (this.fault !== undefined) throw this.fault
    return super.read(key)
  }
}

await test('with a store that announces no changes, cached sessions are served for a moment only and watched ones are read again', async (t) => {
  const awake = setInterval(() => undefined, 50)
  t.teardown(() => clearInterval(awake))
  const store = new SilentStore()
  const [one, other] = [instanceOn(store), instanceOn(store)]
  const id = await newSession(one)
  const session = await live(one, id)
  const watched = await live(other, id)
  const ended = new Promise<string>((resolve) => void other.endings.watch(watched, { isUse: true, onEnd: resolve }))
  await one.sessions.end(session.key, 'logout')
  t.equal((await one.reader.read(one.cookie(id))).is, 'none', 'the instance that ended the session refuses it at once')
  t.equal(await within(ended, 'a watcher hears of the end'), 'logout')
  while ((await other.reader.use(other.cookie(id))).is === 'live') {
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
  t.pass('another instance refuses it soon')
})

await test('a watched session that cannot be read goes on, whatever the error is', async (t) => {
  const store = new SilentStore()
  const instance = instanceOn(store)
  const id = await newSession(instance)
  const session = await live(instance, id)
  let reason: string | undefined
  for (const fault of [new StoreUnavailable(undefined), new Error('a bug')]) {
    store.fault = fault
    instance.endings.watch(session, { isUse: true, onEnd: (why) => (reason = why) })
    await new Promise((resolve) => void setImmediate(resolve))
    t.equal(reason, undefined)
  }
})

await test('watched sessions that cannot be read are retried at different moments', async (t) => {
  const awake = setInterval(() => undefined, 50)
  t.teardown(() => clearInterval(awake))
  const store = new SilentStore()
  const instance = instanceOn(store, 600_000, false)
  const count = 400
  let tries = 0
  // When the retries are due: how late a busy machine runs them does not matter.
  const due: number[] = []
  const { setTimeout: start } = globalThis
  const value = (run: () => void, ms: number): NodeJS.Timeout => {
    due.push(Math.floor(performance.now() + ms))
    return start(run, ms)
  }
  t.intercept(globalThis, 'setTimeout', { value })
  for (let index = 0; index < count; index++) {
    const session = await live(instance, await newSession(instance))
    t.teardown(instance.endings.watch(session, { isUse: true, onEnd: () => undefined }))
  }
  const done = Promise.withResolvers<void>()
  store.read = async () => {
    if (++tries === 3 * count) done.resolve()
    throw new StoreUnavailable(undefined)
  }
  await done.promise
  const moments = new Set(due.slice(-count))
  t.ok(moments.size > count / 4, `${moments.size} moments`)
})

/** A store that takes no writes, so that idle limits do not move. */
class FullStore extends MemoryStore {
  asked = 0

  override async extend(key: string): ReturnType<MemoryStore['read']> {
    this.asked++
    return this.read(key)
  }
}

await test('a watched session whose idle limit cannot be moved is not touched every second while it has long to live', async (t) => {
  const store = new FullStore()
  const instance = instanceOn(store)
  // A touch of the session has long been due.
  const session = await live(instance, await newSession(instanceOn(store, 300_000)))
  t.teardown(instance.endings.watch(session, { isUse: true, onEnd: () => undefined }))
  await new Promise((resolve) => void setTimeout(resolve, 1200))
  t.equal(store.asked, 1)
})

await test('a record of another version is no session, and is not deleted', async (t) => {
  const store = new MemoryStore()
  const { sessions } = instanceOn(store)
  const { endsAt: _, ...lacking } = sessionRecord()
  for (const [at, record] of [null, 'text', [], lacking].entries()) {
    const id = `id-${at}`
    await sessions.create(id, { ...sessionRecord(), toJSON: () => record } as never)
    t.ok(await store.read(sessionKey(id)))
    t.equal(await sessions.load(id), undefined)
    t.ok(await store.read(sessionKey(id)))
  }
})

await test('the near cache is bounded in bytes', async (t) => {
  const store = new MemoryStore()
  const instance = instanceOn(store)
  const near = new NearCache(instance.sessions, store, { maxBytes: 100_000 })
  for (let count = 0; count < 200; count++) await near.load(await newSession(instance))
  t.ok(near.size.bytes <= 100_000, `${near.size.bytes} bytes`)
  t.ok(near.size.sessions > 10 && near.size.sessions < 200, `${near.size.sessions} sessions`)
  const huge = await newSession(instance, { accessToken: 'x'.repeat(100_000) })
  t.equal((await near.load(huge))?.id, huge, 'a session that is too big is read')
  t.equal(near.peek(huge, sessionKey(huge)), undefined, 'it is not cached')
  t.same(near.counts, { hits: 0, misses: 1 })
})
