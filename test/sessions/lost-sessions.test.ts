import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { SESSION_KEYS, sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { DurableRedis } from '../support/redis/durable-redis.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { instanceOn, newSession } from '../support/sessions/session-instance.ts'
import { samplesOf, valueOf } from '../support/telemetry/metrics.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

async function isLive(url: string, cookie: string): Promise<boolean> {
  const response = await fetch(`${url}/auth/session`, { headers: { cookie } })
  const { authenticated } = (await response.json()) as { authenticated?: boolean }
  if (authenticated === undefined) throw new Error(`${response.status}`)
  return authenticated
}

/** The store keys of all sessions. */
async function sessionKeys(client: Awaited<ReturnType<typeof storeClient>>): Promise<string[]> {
  return (await client.keys(`${SESSION_KEYS.prefix}*`)).filter(({ length }) => length === SESSION_KEYS.length)
}

async function storeOf({ opsUrl }: { readonly opsUrl: string }): Promise<string> {
  const [label = ''] = (await samplesOf(opsUrl, 'bff_session_store_info')).keys()
  return label
}

/** Two instances on a Redis that can start empty, and what they say of lost sessions. */
async function losingWorld(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const redis = await DurableRedis.start(t, await freePort(), [])
  const world = await startWorld(t, { settings: { REDIS_URL: redis.url, ...settings } })
  const servers = [world.server, await world.instance()]
  return {
    ...world,
    redis,
    servers,
    store: () => storeClient(t, { redis }),
    /** Users who have logged in, and whom both instances have seen. @returns their Cookie headers */
    cookies: async (count: number): Promise<string[]> => {
      const users = await Promise.all(Array.from({ length: count }, () => world.user()))
      const cookies = users.map(({ cookie }) => cookie)
      for (const { url } of servers) for (const cookie of cookies) t.ok(await isLive(url, cookie))
      return cookies
    },
    /** How many of these sessions are live, for each instance. */
    live: (cookies: readonly string[]) =>
      Promise.all(
        servers.map(async ({ url }) => {
          const found = await Promise.all(cookies.map((cookie) => isLive(url, cookie)))
          return found.filter(Boolean).length
        }),
      ),
    counted: async (): Promise<number> => {
      const counts = await Promise.all(servers.map(({ opsUrl }) => samplesOf(opsUrl, 'bff_sessions_ended_total')))
      return counts.reduce((sum, each) => sum + (each.get('reason="gone"') ?? Number.NaN), 0)
    },
    logged: (): unknown[] =>
      servers.flatMap(({ log }) => log.flatMap(({ audit, reason }) => (audit === 'session_ended' ? [reason] : []))),
  }
}

await test('Sessions that were in use, and that Redis has lost, are counted and logged once over all instances', async (t) => {
  await t.test('where half of them are lost', async (t) => {
    const { cookies, store, live, counted, logged } = await losingWorld(t)
    const all = await cookies(12)
    t.equal(await counted(), 0)
    const client = await store()
    await client.del((await sessionKeys(client)).slice(0, 6))
    t.same(await live(all), [6, 6])
    await until(async () => (await counted()) === 6, 'six are counted')
    t.same(await live(all), [6, 6], 'again')
    t.same(await counted(), 6)
    t.same(
      logged(),
      Array.from({ length: 6 }, () => 'gone'),
    )
  })

  await t.test('where Redis starts again without its data', async (t) => {
    const { cookies, redis, servers, live, counted } = await losingWorld(t)
    const all = await cookies(5)
    await redis.kill()
    await redis.forget()
    await redis.restart()
    for (const { opsUrl } of servers)
      await until(async () => (await valueOf(opsUrl, 'bff_session_store_up')) === 1, 'the instance has its store')
    await until(async () => (await live(all)).every((count) => count === 0), 'nobody is logged in')
    await until(async () => (await counted()) === 5, 'all are counted')
  })

  await t.test('where they have only a socket', async (t) => {
    const { user, store, counted, logged } = await losingWorld(t)
    const client = await (await user()).socket('/ws/session').opened()
    await client.count(1)
    await (await store()).flushAll()
    t.same(await client.closed, { code: 4401, reason: 'session_expired' })
    await until(async () => (await counted()) === 1, 'it is counted')
    t.same(logged(), ['gone'])
  })
})

await test('A session that is missing counts as lost neither after a logout, nor at a limit, nor where it is merely unreadable', async (t) => {
  const { cookies, user, store, live, counted, logged } = await losingWorld(t, { SESSION_IDLE_SECONDS: '2' })
  const ended = await user()
  const { cookie } = ended
  t.same(await live([cookie]), [1, 1])
  t.equal((await ended.logOut()).status, 204)
  t.same(await live([cookie]), [0, 0], 'its cookie is used by somebody')

  const [unreadable = ''] = await cookies(1)
  const client = await store()
  const [key = ''] = await sessionKeys(client)
  await client.set(key, 'v1.unknown.AAAA', { expiration: 'KEEPTTL' })
  const isGone = async (cookies: string[]): Promise<boolean> => (await live(cookies)).every((count) => count === 0)
  await until(() => isGone([unreadable]), 'both have heard of the change')

  const idle = await cookies(1)
  await until(() => isGone(idle), 'it has reached its idle limit')
  await until(() => logged().includes('idle'), 'that is recorded')
  t.same(await live([cookie, unreadable, ...idle]), [0, 0])
  t.same(logged(), ['logout', 'idle'])
  t.equal(await counted(), 0)
})

await test('bff_session_store_info tells that Redis has started without its data, also to instances that started after it', async (t) => {
  const { redis, servers, server, instance } = await losingWorld(t)
  // A scrape waits 250 ms for it.
  const told = async (each: typeof server): Promise<string> => {
    await until(async () => (await storeOf(each)) !== '', 'it has heard of its store')
    return storeOf(each)
  }
  const first = await told(server)
  t.match(first, /^store="[0-9a-f]{8}"$/)
  for (const each of [...servers, await instance()]) t.equal(await told(each), first)
  await redis.kill()
  await redis.restart()
  const after = await instance()
  for (const each of [server, after]) await until(async () => (await storeOf(each)) === first, 'it has its data')
  await redis.kill()
  await redis.forget()
  await redis.restart()
  const last = await instance()
  await until(async () => ![first, ''].includes(await storeOf(last)), 'it is another one')
  for (const each of [...servers, after])
    await until(async () => (await storeOf(each)) === (await storeOf(last)), 'all see the same')
})

await test('A session that was last seen longer ago than a tombstone lasts is not said to be lost', async (t) => {
  const pass = clockAhead(t)
  for (const [seconds, isCounted] of [
    [700, true],
    [740, false],
  ] as const) {
    const instance = instanceOn(new MemoryStore(), 3_600_000)
    const { reader, sessions, store, cookie } = instance
    const lost: string[] = []
    sessions.endings.onRecord(({ key, reason }) => void lost.push(`${reason} ${key}`))
    const id = await newSession(instance)
    t.match(await reader.use(cookie(id)), { is: 'live' })
    await store.remove(sessionKey(id))
    pass(seconds * 1000)
    t.match(await reader.use(cookie(id)), { is: 'none' })
    await setImmediate()
    t.same(lost, isCounted ? [`gone ${sessionKey(id)}`] : [])
  }
})

/** An instance whose store counts how often it is asked for a lost session, and what the instance says of these. */
function countingInstance(failures = 0) {
  const store = new MemoryStore()
  const instance = instanceOn(store, 3_600_000)
  const readMany = store.readMany.bind(store)
  const [asked, lost]: [string[], string[]] = [[], []]
  store.readMany = async (keys) => {
    asked.push(...keys.slice(0, 1))
    if (asked.length <= failures) throw new StoreUnavailable(new Error('planted'))
    return readMany(keys)
  }
  instance.sessions.endings.onRecord(({ key, reason }) => void lost.push(`${reason} ${key}`))
  return { ...instance, asked, lost }
}

await test('The store is asked once for a session that is lost, and never because of a cookie that nobody has used', async (t) => {
  const instance = countingInstance()
  const { reader, store, cookie, asked, lost } = instance
  const id = await newSession(instance)
  const key = sessionKey(id)
  t.match(await reader.use(cookie(id)), { is: 'live' })
  await store.remove(key)
  const header = cookie(id)
  await Promise.all(Array.from({ length: 5 }, async () => reader.use(header)))
  for (const find of [() => reader.use(header), () => reader.read(header)]) t.match(await find(), { is: 'none' })
  for (const madeUp of [cookie('never a session'), `${header}x`, `${cookie(id).slice(0, -1)}x`]) {
    t.match(await reader.use(madeUp), { is: 'none' })
  }
  await setImmediate()
  t.same(asked, [key])
  t.same(lost, [`gone ${key}`])
})

await test('A session that is lost while the store is away is recorded when it is back', async (t) => {
  const instance = countingInstance(2)
  const { reader, store, cookie, lost } = instance
  const id = await newSession(instance)
  t.match(await reader.use(cookie(id)), { is: 'live' })
  await store.remove(sessionKey(id))
  t.match(await reader.use(cookie(id)), { is: 'none' })
  await until(() => lost.length > 0, 'it is recorded')
  t.same(lost, [`gone ${sessionKey(id)}`])
})

await test('A session that only a socket uses, for however long, is said to be lost', async (t) => {
  const pass = clockAhead(t)
  const instance = countingInstance()
  const { reader, endings, store, lost } = instance
  const id = await newSession(instance)
  const found = await reader.reload(id)
  if (found.is !== 'live') return t.fail(found.is)
  const { session } = found
  endings.watch(session, { isUse: false, onEnd: () => undefined })
  t.ok(await endings.confirm(session))
  pass(740_000)
  t.ok(await endings.confirm(session))
  await store.remove(session.key)
  await until(() => lost.length > 0, 'it is recorded')
  t.same(lost, [`gone ${session.key}`])
})

await test('A session that is missing since it has reached a limit is not said to be lost', async (t) => {
  const { sessions } = instanceOn(new MemoryStore())
  const lost: string[] = []
  sessions.endings.onRecord(({ key }) => void lost.push(key))
  const [past, future] = [Date.now() - 1, Date.now() + 60_000]
  for (const [key, endsAt, idleEndsAt] of [
    ['ended', past, future],
    ['idle', future, past],
    ['lost', future, future],
  ] as const) {
    await sessions.endings.recordLoss({ key, endsAt, idleEndsAt, seenAt: standstill.now() })
  }
  t.same(lost, ['lost'])
})
