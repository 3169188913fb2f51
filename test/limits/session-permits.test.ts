import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import { SessionPermits } from '../../src/limits/session-permits.ts'
import { besideKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { RedisStore } from '../../src/store/redis-store.ts'
import { SILENCE_MS } from '../../src/store/shared-limits.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

const full = { code: 4429, reason: 'too_many_relays' }
const KEY = 'session:a'

async function permitsOn(t: Test, url: string, limit: number): Promise<{ permits: SessionPermits; store: RedisStore }> {
  const store = await connectedStore(t, url)
  return { permits: new SessionPermits(store, limit), store }
}

/** Two instances on one Redis, and a browser that is logged in to both. */
async function twoInstances(
  t: Test,
  settings: Record<string, string>,
): Promise<World<'scripted'> & { ports: number[] }> {
  const world = await startWorld(t, { ...RELAY, redis: true, settings })
  const other = await world.instance()
  return { ...world, ports: [world.server.port, other.port] }
}

await test('MAX_RELAYS_PER_SESSION counts the trading sockets of a session on all instances', async (t) => {
  const world = await twoInstances(t, { MAX_RELAYS_PER_SESSION: '3' })
  const [one, other] = world.ports
  const redis = await world.storeClient()
  const sockets = Array.from({ length: 8 }, (_, index) =>
    world.socket(TRADING, { at: { port: world.ports[index % 2] ?? 0 } }),
  )
  const closes: unknown[] = []
  for (const { closed } of sockets) void closed.then((close) => closes.push(close)).catch(() => undefined)
  await until(() => closes.length === 5 && world.upstream.open === 3, 'of eight sockets at once, three stay open')
  t.same(
    closes,
    Array.from({ length: 5 }, () => full),
  )
  t.equal(world.upstream.otpRequests.length, 3, 'a refused socket causes no request for a one-time URL')

  const open = sockets.filter(({ socket }) => socket.readyState === 1)
  for (const [count, client] of open.entries()) {
    client.socket.close(1000)
    await client.closed
    await until(() => world.upstream.open === 2)
    const port = (count % 2 === 0 ? one : other) ?? 0
    await until(async () => {
      const next = world.socket(TRADING, { at: { port } })
      next.socket.once('close', () => closes.push(port))
      const refused = closes.length
      await until(() => closes.length > refused || world.upstream.open === 3)
      return world.upstream.open === 3
    }, 'a closed socket releases its permit on every instance')
  }
  t.equal((await world.logOut()).status, 204)
  await until(() => world.upstream.open === 0)
  await until(async () => (await redis.keys('*:relays')).length === 0, 'the permits go with the session')
})

await test('a stranger costs no permit, and no command for one', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted', redis: true })
  const redis = await world.storeClient()
  const hasTaken = async (): Promise<boolean> => (await redis.info('commandstats')).includes('cmdstat_getdel')
  for (let count = 0; count < 5; count++) {
    t.equal((await world.socket(TRADING, { headers: { cookie: `__Host-session=made-up-${count}` } }).closed).code, 4401)
  }
  t.same(await redis.keys('*:relays'), [])
  t.notOk(await hasTaken())
})

/** The permits of two processes, of which one can be cut off from Redis. */
async function nearAndFar(t: Test, limit: number) {
  const redis = await testRedis(t)
  const client = await storeClient(t, { redis })
  await client.aclSetUser('far', ['on', '>away', '~*', '&*', '+@all'])
  const { permits: near } = await permitsOn(t, redis.url, limit)
  const { permits: far, store } = await permitsOn(t, `redis://far:away@127.0.0.1:${redis.port}`, limit)
  const leave = async (): Promise<void> => {
    await client.aclSetUser('far', 'off')
    await client.sendCommand(['CLIENT', 'KILL', 'USER', 'far'])
    await until(() => store.unavailableSince() !== undefined)
  }
  return { client, near, far, store, leave }
}

await test('permits count again once Redis is back, also those that were taken while it was away', async (t) => {
  const { client, near, far, leave } = await nearAndFar(t, 3)
  const atHome = await near.acquire(KEY)
  t.ok(atHome)
  const before = await far.acquire(KEY)
  t.ok(before)
  await leave()
  const alone = [await far.acquire(KEY), await far.acquire(KEY)]
  t.ok(alone[0] && alone[1], 'a process that is alone counts its own sockets')
  t.equal(await far.acquire(KEY), undefined, 'up to the limit')
  // The server forgets that process meanwhile.
  await client.del(besideKey(KEY, 'relays'))
  await client.aclSetUser('far', 'on')
  await until(
    async () => /:3:/.test((await client.get(besideKey(KEY, 'relays'))) ?? ''),
    'the process states its permits',
  )
  t.equal(await near.acquire(KEY), undefined)
  for (const release of [before, ...alone]) release?.()
  await until(async () => !/:[23]:/.test((await client.get(besideKey(KEY, 'relays'))) ?? ''))
  const again = await near.acquire(KEY)
  t.ok(again)
  again?.()
  atHome?.()
  await until(
    async () => (await client.exists(besideKey(KEY, 'relays'))) === 0,
    'nothing is left of permits that were given back',
  )
})

await test('places of sockets that close while Redis is away are free on all instances once it is back', async (t) => {
  const { client, near, far, store, leave } = await nearAndFar(t, 1)
  const permit = await far.acquire(KEY)
  t.ok(permit)
  await leave()
  permit?.()
  t.equal(await near.acquire(KEY), undefined, 'it is not known yet')
  // Its silence would free the place, too.
  await client.persist(besideKey(KEY, 'relays'))
  await client.aclSetUser('far', 'on')
  await until(() => store.unavailableSince() === undefined)
  await until(async () => (await client.exists(besideKey(KEY, 'relays'))) === 0, 'the place is given back')
  t.ok(await near.acquire(KEY))
})

await test('a Redis that restarts empty learns the permits of all instances at once', async (t) => {
  const redis = await startRedis()
  const { permits: one, store } = await permitsOn(t, redis.url, 2)
  const { permits: other } = await permitsOn(t, redis.url, 2)
  await one.acquire(KEY)
  await other.acquire(KEY)
  await redis.close()
  await until(() => store.unavailableSince() !== undefined)
  const next = await startRedis([], redis.port)
  t.teardown(() => next.close())
  const client = await storeClient(t, { redis: next })
  await until(async () => (await client.get(besideKey(KEY, 'relays')))?.split(' ').length === 2)
  t.equal(await one.acquire(KEY), undefined)
})

await test('a holder counts until it has been silent for 25 seconds, whether the clock of Redis goes forward or back', async (t) => {
  const redis = await testRedis(t)
  const { permits } = await permitsOn(t, redis.url, 5)
  const client = await storeClient(t, { redis })
  const from = Date.now()
  for (const [silentMs, isGranted] of [
    [20_000, false],
    [26_000, true],
    [-20_000, false],
    [-26_000, true],
  ] as const) {
    const key = `session:${silentMs}`
    await client.set(besideKey(key, 'relays'), `dead:5:${Date.now() - silentMs}`)
    t.equal((await permits.acquire(key)) !== undefined, isGranted, `${silentMs} ms`)
    t.equal((await client.get(besideKey(key, 'relays')))?.includes('dead'), !isGranted, 'a dead holder is forgotten')
  }
  const expiresAt = await client.pExpireTime(besideKey('session:26000', 'relays'))
  t.ok(expiresAt >= from + 25_000)
  t.ok(expiresAt <= Date.now() + 25_000, 'the key expires by itself')
})

await test('what a process holds is stated twice in the time after which a silent holder is forgotten, until it holds nothing', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const stated: number[] = []
  const permits = new SessionPermits(
    {
      limits: {
        ...new MemoryStore().limits,
        hold: async (holdings) => void stated.push(...holdings.map(({ count }) => count)),
      },
      onChange: () => undefined,
      unavailableSince: () => undefined,
    },
    2,
  )
  for (let times = 0; times < 2; times++) {
    const release = await permits.acquire(KEY)
    mock.timers.tick(SILENCE_MS)
    t.same(stated.splice(0), [1, 1])
    await setImmediate()
    release?.()
    await setImmediate()
    mock.timers.tick(SILENCE_MS)
    t.same(stated.splice(0), [0])
  }
})

await test('a statement of what a process holds takes nothing from a claim that is on its way', async (t) => {
  const { limits } = new MemoryStore()
  const granted = Promise.withResolvers<boolean>()
  const stated: number[] = []
  const listeners: ((key: string | undefined) => void)[] = []
  const permits = new SessionPermits(
    {
      limits: {
        ...limits,
        claim: () => granted.promise,
        hold: async (holdings) => void stated.push(...holdings.map(({ count }) => count)),
      },
      onChange: (listener) => void listeners.push(listener),
      unavailableSince: () => undefined,
    },
    2,
  )
  const acquired = permits.acquire(KEY)
  for (const listener of listeners) listener(undefined)
  t.same(stated, [1])
  granted.resolve(false)
  t.equal(await acquired, undefined)
  t.same(stated, [1, 0], 'a refused claim is taken back')
})

await test('claims and releases at the same moment leave the count in Redis right', async (t) => {
  const redis = await testRedis(t)
  const { permits: one } = await permitsOn(t, redis.url, 4)
  const { permits: other } = await permitsOn(t, redis.url, 4)
  const client = await storeClient(t, { redis })
  let most = 0
  let open = 0
  const page = async (permits: SessionPermits, rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const release = await permits.acquire(KEY)
      if (release === undefined) continue
      most = Math.max(most, ++open)
      await setImmediate()
      open--
      release()
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, index) => page(index % 2 === 0 ? one : other, 100)))
  t.equal(most, 4, 'never more than the limit, and sometimes all')
  await until(async () => (await client.exists(besideKey(KEY, 'relays'))) === 0)
})
