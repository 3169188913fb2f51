import type { Test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import { Changeable } from '../../src/config/changing.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { connectedStore, QUIET } from '../support/redis/connected-store.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until, within } from '../support/time/until.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

await sideBySide({
  'reads and writes reject with StoreUnavailable while Redis is down, and cached values are invalidated': async (t) => {
    const redis = await testRedis(t)
    const store = await connectedStore(t, redis.url)
    const invalidated = new Promise<void>((resolve) => {
      store.onChange((key) => {
        if (key === undefined) resolve()
      })
    })
    await redis.close()
    await within(invalidated, 'the outage is noticed')
    await t.rejects(store.read('k'), StoreUnavailable)
    await t.rejects(store.create('k', 'v', Date.now() + 1000), StoreUnavailable)
    t.type(store.unavailableSince(), 'number')
  },

  'a Redis that hangs is unavailable, and is used again once it responds': async (t) => {
    const redis = await testRedis(t)
    const store = await connectedStore(t, redis.url)
    await store.create('k', 'v', Date.now() + 60_000)
    const warnings = { count: 0 }
    const doubted = new Promise<void>((resolve) => {
      store.onChange((key) => {
        if (key !== undefined) return
        warnings.count++
        resolve()
      })
    })
    redis.process.kill('SIGSTOP')
    // Other commands go on meanwhile. They must not make the connection look healthy.
    const traffic = setInterval(() => void store.read('other').catch(() => undefined), 10)
    t.teardown(() => clearInterval(traffic))
    await within(doubted, 'the outage is noticed')
    await t.rejects(store.read('k'), StoreUnavailable)
    t.equal(warnings.count, 1, 'the outage is logged once')
    redis.process.kill('SIGCONT')
    const valueOf = async (key: string): Promise<string | undefined> => {
      try {
        return (await store.read(key))?.value
      } catch (error) {
        t.type(error, StoreUnavailable)
        return undefined
      }
    }
    await until(async () => (await valueOf('k')) === 'v')
    t.equal(store.unavailableSince(), undefined)
  },

  'a store counts anew for how long it has been available after each interruption': async (t) => {
    const redis = await testRedis(t)
    const store = await connectedStore(t, redis.url)
    redis.process.kill('SIGSTOP')
    await until(() => store.unavailableSince() !== undefined)
    t.equal(store.availableForMs('k'), 0)
    const frozenUntil = performance.now()
    redis.process.kill('SIGCONT')
    await until(() => store.unavailableSince() === undefined)
    t.ok(store.availableForMs('k') < performance.now() - frozenUntil)
  },

  'a store that was away for long is reached again over a network that is slow': async (t) => {
    const redis = await testRedis(t)
    const proxy = await CommandProxy.start(t, redis)
    const store = await connectedStore(t, proxy.url)
    proxy.isDown = true
    await until(() => store.unavailableSince() !== undefined)
    const silentAt = performance.now() + 3000
    await until(() => performance.now() > silentAt, 'the link counts as silent')
    proxy.lateMs = 300
    proxy.isDown = false
    await until(() => store.unavailableSince() === undefined)
  },

  'a connection that stays silent is replaced by a new one': async (t) => {
    const redis = await testRedis(t)
    const store = await connectedStore(t, redis.url)
    // A peer that vanished silently: no command to it gets a reply.
    redis.process.kill('SIGSTOP')
    await until(() => store.unavailableSince() !== undefined)
    const { port } = redis
    await redis.close()
    const next = await startRedis([], port)
    t.teardown(() => next.close())
    await until(() => store.unavailableSince() === undefined)
    t.equal(await store.create('k', 'v', Date.now() + 1000), true)
  },

  'a Redis that becomes a replica is left at once, and used again as a master': async (t) => {
    const redis = await testRedis(t)
    const refused = (response: Promise<unknown>) => t.rejects(response, StoreUnavailable)
    for (const [servesReads, use] of [
      ['yes', (store: RedisStore) => refused(store.create('other', 'v', Date.now() + 1000))],
      ['yes', async (store: RedisStore) => void (await store.extend('k', Date.now() + 90_000))],
      // Without its master it refuses reads too.
      ['no', (store: RedisStore) => refused(store.read('k'))],
    ] as const) {
      const { store, reasons } = await watched(t, redis.url)
      await store.create('k', 'v', Date.now() + 60_000)
      const warnings: unknown[] = []
      store.onChange((key) => key === undefined && warnings.push(key))
      await askRedis(redis, ['CONFIG', 'SET', 'replica-serve-stale-data', servesReads])
      await askRedis(redis, ['REPLICAOF', '127.0.0.1', '1'])
      await use(store)
      t.type(store.unavailableSince(), 'number')
      t.equal(warnings.length, 1, 'the values that were read before are invalidated')
      await refused(store.read('k'))
      t.match(reasons, [/^READONLY|MASTERDOWN$/])
      await askRedis(redis, ['REPLICAOF', 'NO', 'ONE'])
      await until(() => store.unavailableSince() === undefined)
      t.equal(await store.create('new', 'v', Date.now() + 1000), true)
      await store.remove('new')
    }
  },

  'the store does not use a replica': async (t) => {
    const master = await testRedis(t)
    const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
    const reasons: string[] = []
    const warn = (details: object): unknown => reasons.push((details as { reason: string }).reason)
    const store = RedisStore.connect(new Changeable(replica.url), { ...QUIET, warn })
    t.teardown(() => store.close())
    await until(() => reasons.length > 0)
    t.same(reasons, ['it is a slave'])
    await askRedis(replica, ['REPLICAOF', 'NO', 'ONE'])
    await until(() => store.unavailableSince() === undefined)
  },

  'the store waits while Redis loads its data': async (t) => {
    const redis = await testRedis(t, ['--enable-debug-command', 'yes'])
    const { store, reasons } = await watched(t, redis.url)
    await store.create('k', 'v', Date.now() + 60_000)
    await askRedis(redis, ['DEBUG', 'POPULATE', '2000'])
    // It loads for 2 s, and serves its clients now and then.
    const slowly = ['key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024']
    await askRedis(redis, ['CONFIG', 'SET', ...slowly])
    void askRedis(redis, ['DEBUG', 'RELOAD'])
    const isRefused = () =>
      store.read('k').then(
        () => false,
        (error) => error instanceof StoreUnavailable,
      )
    await until(isRefused)
    t.same(reasons, ['LOADING'])
    t.type(store.unavailableSince(), 'number')
    await until(async () => (await store.read('k').catch(() => undefined)) !== undefined)
    // On a busy machine it may serve nobody for longer than a store waits.
    t.same(
      reasons.filter((reason) => reason !== 'silence'),
      ['LOADING'],
    )
  },
})

/** A store, and the reasons for its outages that it logs. */
async function watched(t: Test, url: string): Promise<{ store: RedisStore; reasons: string[] }> {
  const reasons: string[] = []
  const warn = (details: object): unknown => reasons.push((details as { reason: string }).reason)
  return { store: await connectedStore(t, url, { warn }), reasons }
}
