import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { askRedis } from '../support/redis/topologies.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { BUY, standstillWorld, type StandstillWorld, type Trader } from '../support/sessions/standstill-world.ts'
import { until } from '../support/time/until.ts'

const STANDSTILL_MS = 700

await test('after a standstill, while Redis does not answer, nothing is sent: a call gets 503, a socket with a message 1013, and others stay', async (t) => {
  const world = await standstillWorld(t, { hasOperators: false })
  const [ordering, silent, calling] = [await world.trader('A'), await world.trader('B'), await world.trader('C')]
  const [redis] = world.nodes
  const before = world.orders.length
  world.stop()
  redis?.process.kill('SIGSTOP')
  ordering.socket.browser.socket.send(BUY)
  const call = calling.order('in the dark')
  await delay(STANDSTILL_MS)
  world.goOn()
  t.match(await ordering.socket.browser.closed, { code: 1013, reason: /^session_store_unavailable/ })
  t.equal(await call, 503)
  t.same(ordering.socket.seen, [])
  redis?.process.kill('SIGCONT')
  await until(async () => (await calling.order('again')) === 200, 'orders are sent again')
  silent.socket.browser.socket.send(BUY)
  await until(() => silent.socket.seen.includes(BUY), 'the other socket trades on')
  t.same(ordering.socket.seen, [])
  t.same(world.orders.slice(before), ['again'])
})

/** The keys of the sessions that a server has. */
async function sessionsAt(node: RedisProcess): Promise<string[]> {
  let keys: unknown
  // On a busy machine a reply may come too late.
  await until(async () => Array.isArray((keys = await askRedis(node, ['KEYS', 'bff:1:session:*']))))
  return (keys as string[]).filter((key) => /^bff:1:session:[\w-]+$/.test(key))
}

/** The master that has the session of a new user, and the user. */
async function traderAt(
  world: StandstillWorld,
  name: string,
): Promise<{ trader: Trader; node: RedisProcess | undefined }> {
  const before = await Promise.all(world.nodes.map(sessionsAt))
  const trader = await world.trader(name)
  const after = await Promise.all(world.nodes.map(sessionsAt))
  const masters = await Promise.all(
    world.nodes.map(async (node) => {
      let role: unknown
      await until(async () => Array.isArray((role = await askRedis(node, ['ROLE']))))
      return String(role).startsWith('master')
    }),
  )
  const node = world.nodes.find(
    (_node, at) => masters[at] === true && (after[at]?.length ?? 0) > (before[at]?.length ?? 0),
  )
  return { trader, node }
}

await test('after a standstill, a master of a Cluster that does not answer stops only the orders of its own sessions', async (t) => {
  const world = await standstillWorld(t, { hasOperators: false, isCluster: true })
  const first = await traderAt(world, 'CR0')
  let other = await traderAt(world, 'CR1')
  for (let each = 2; other.node === first.node; each++) other = await traderAt(world, `CR${each}`)
  world.stop()
  await delay(STANDSTILL_MS)
  first.node?.process.kill('SIGSTOP')
  first.trader.socket.browser.socket.send(BUY)
  other.trader.socket.browser.socket.send(BUY)
  const calls = [first.trader.order('of the first'), other.trader.order('of the other')]
  world.goOn()
  t.match(await first.trader.socket.browser.closed, { code: 1013 })
  t.same(await Promise.all(calls), [503, 200])
  t.same(other.trader.socket.seen, [BUY])
  t.same(first.trader.socket.seen, [])
  first.node?.process.kill('SIGCONT')
})
