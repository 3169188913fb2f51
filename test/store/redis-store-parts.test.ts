import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { besideKey, budgetKey, ENDED_CHANNEL } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { FIRST_REPORT } from '../support/budget/first-report.ts'
import { connectedOf, error, soon, storeOf } from '../support/redis/store-alone.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

await test('a store on a Cluster hears of burials over a channel of its own, once it wants to', async (t) => {
  const { store, told, open, sent } = await connectedOf(t, 'redis+cluster://127.0.0.1:7000')
  t.ok(store.staleMs > 0 && store.staleMs <= 1000)
  t.equal(store.reportsBurials, false)
  store.watchBurials()
  store.watchBurials()
  await until(() => store.reportsBurials)
  t.same(told(), [undefined])
  t.equal(sent().filter((each) => each === `7000 SUBSCRIBE ${ENDED_CHANNEL}`).length, 1)
  const channel = open()
    .find(({ channels }) => channels.size > 0)
    ?.channels.get(ENDED_CHANNEL)
  channel?.('a-key logout now')
  t.same(told(), ['a-key'])
  await store.close()
  t.same(open(), [], 'the channel is closed as well')
})

await test('a store that nobody observes fails in the same way', async (t) => {
  const { store, world } = await connectedOf(t)
  store.observe(undefined as never)
  world.script = () => error('OOM')
  const failing = { name: 'StoreUnavailable', cause: { message: 'OOM that is why' } }
  await t.rejects(store.replace('k', 'v', 'w', soon()), failing)
  world.script = () => 1
  t.equal(await store.replace('k', 'v', 'w', soon()), true)
  const writes = await store.openConfirmed(1)
  await t.rejects(writes.create('k', 'v', soon()), { name: 'StoreUnavailable' })
  await store.close()
  await t.rejects(store.read('k'), { name: 'StoreUnavailable' })
})

await test('a store on one server needs no channel for burials', async (t) => {
  const { store, sent } = await connectedOf(t)
  store.watchBurials()
  await turn()
  t.same(sent(), [])
})

await test('on a Cluster a server that hangs does not make the others unavailable', async (t) => {
  const { store, world, seen } = await connectedOf(t, 'redis+cluster://127.0.0.1:7000')
  const limit = new HeldTimers(t, 'setTimeout', 1500)
  world.script = () => new Promise(() => undefined)
  const late = store.replace('k', 'v', 'w', soon())
  late.catch(() => undefined)
  await turn()
  limit.run()
  await t.rejects(late, StoreUnavailable)
  t.same(seen(), ['failed: timeout', 'asked'])
  t.equal(store.unavailableSince(), undefined)
})

await test('once sessions have an index, a master needs the commands of it', async (t) => {
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const { store, world } = storeOf(t)
  world.probe = () => [Date.now(), ['HSET hash']]
  await store.connected(5000)
  t.equal(store.unavailableSince(), undefined)
  const index = await store.openIndex()
  world.script = () => 3
  t.equal(await index.add('k', { id: 'a', value: 'v', expiresAt: soon() }, 0), 3)
  seconds.run()
  await until(() => store.unavailableSince() !== undefined, 'the next probe')
  t.match(store.warnings(), [/^the session store does not serve: NOPERM: HSET/])
})

await test('commands that are not shared without a right are warned of once the store is connected', async (t) => {
  const { store, world, log } = storeOf(t)
  world.probe = () => [Date.now(), ['GETDEL key']]
  await store.connected(5000)
  await until(() => log.length >= 2)
  t.match(log.at(-1), ['warn', { commands: ['GETDEL'] }, 'the session store forbids commands'])
})

await test('limits, ledgers and documents ask over the same connection, under their own names', async (t) => {
  const { store, world, sent } = await connectedOf(t)
  const asked: (readonly string[])[] = []
  world.script = (words) => {
    asked.push(words.slice(2, 5))
    return JSON.stringify({ is: 'unknown' })
  }
  t.equal(await store.limits.claim({ key: 'permits', holder: 'me', count: 1 }, 1), false)
  const windows = [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }]
  const ledger = await store.openLedger('mine', { windows, leaseMs: 5000, marginMs: 1000, bucketMs: 100 })
  t.same(await ledger.settle(FIRST_REPORT), { is: 'unknown' })
  t.same(
    asked.map(([, key]) => key),
    ['permits', budgetKey('budget', 'mine')],
  )
  const [, , terms] = asked[1] ?? []
  t.match(JSON.parse(terms ?? ''), {
    windows,
    leaseMs: 5000,
    marginMs: 1000,
    bucketMs: 100,
    quietMs: 5250,
    leaseSkewMs: 250,
  })
  sent()
  let news = 0
  const document = await store.openRefusals('mine', () => news++)
  await until(() => news === 1)
  t.ok(sent().includes(`7000 SUBSCRIBE ${budgetKey('budget-news', 'mine')}`))
  world.script = (words) => (asked.push(words.slice(2, 5)), [0, 'v1 text', 7])
  t.same(await document.read(), { version: 'v1', text: 'text', now: 7 })
  t.equal(asked.at(-1)?.[1], budgetKey('refusals', 'mine'))
  document.close()
})

await test('a write that replicas must confirm is told or fails by what they say, and why is a warning until they do', async (t) => {
  let confirmed = 1
  const { store, seen, serve, servers, log } = await connectedOf(t, undefined, {
    WAIT: () => confirmed,
    INFO: 'role:master\r\nmaster_replid:one',
    SET: 'OK',
  })
  const writes = await store.openConfirmed(1)
  t.equal(await writes.create('k', 'v', soon()), true)
  servers[7000] = serve({ SET: error('OOM') })
  await t.rejects(writes.create('k', 'v', soon()), { name: 'StoreUnavailable', cause: { message: 'OOM that is why' } })
  t.same(seen(), ['refused: oom', 'failed: unconfirmed'])
  servers[7000] = serve()
  confirmed = 0
  await t.rejects(writes.create('k', 'v', soon()), {
    name: 'StoreUnavailable',
    cause: { message: '0 of 1 replicas confirmed' },
  })
  t.same(seen(), ['failed: unconfirmed'])
  const why = '0 of 1 replicas confirmed'
  t.same(store.warnings(), [
    `calls with an Idempotency-Key are refused, since no replicas confirm their records (${why})`,
  ])
  t.ok(log.some((entry) => JSON.stringify(entry).includes(why)))
})

await test('whether a replica has a key is asked of its master, and replication is watched once wanted', async (t) => {
  const first = new HeldTimers(t, 'setTimeout', 1000)
  const { store } = await connectedOf(t, undefined, { INFO: 'role:master\r\nconnected_slaves:2\r\naof_enabled:1' })
  t.equal(await store.isReplicated(besideKey('k', 'left')), undefined)
  store.watchReplication(1)
  first.run()
  await until(() => store.warnings().length > 0)
  t.match(store.warnings(), [/^replicas of Redis: 2; IDEMPOTENCY_REPLICAS: 1/])
})

await test('without replicas a key counts as unreplicated where some were wanted, and else there is nothing to say', async (t) => {
  const { store } = await connectedOf(t)
  store.watchReplication(0)
  t.equal(await store.isReplicated('k'), undefined)
  store.watchReplication(1)
  t.equal(await store.isReplicated('k'), false)
})

await test('a store that is closed is no loss, leaves no connection, and answers nobody', async (t) => {
  const { store, open, log } = await connectedOf(t, undefined, { WAIT: 1, INFO: 'role:master\r\nmaster_replid:one' })
  await (await store.openConfirmed(1)).create('k', 'v', soon())
  await store.isReplicated('k')
  store.watchReplication(0)
  log.length = 0
  await store.close()
  await turn()
  t.same([open(), log], [[], []])
  t.type(store.unavailableSince(), 'number')
  await t.rejects(store.read('k'), StoreUnavailable)
  t.equal(await store.isReplicated('k'), false)
})
