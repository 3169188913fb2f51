import { syncBuiltinESMExports } from 'node:module'
import promises, { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { ClusterNodes } from '../../src/store/links/cluster-nodes.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'
import { master, serversOf, slotsOf, type Server } from '../support/redis/servers-alone.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { until } from '../support/time/until.ts'

const KEYS = Array.from({ length: 20 }, (_, at) => `key ${at}`)
const LOW = KEYS.find((key) => slotOf(key) < 8192) ?? ''
const HIGH = KEYS.find((key) => slotOf(key) >= 8192) ?? ''
const telling = (slots: unknown): Server => master({ CLUSTER: slots })
const BOTH = slotsOf(7000, 7001)

/** The nodes of a Cluster that answer as a test says. */
function nodesOf(t: Test, servers: Record<number, Server | undefined>, seeds = [7000]) {
  const world = { order: 0.01 }
  // Masters are asked in their order, unless a test turns it round.
  let random = 0.5
  t.intercept(Math, 'random', { value: () => (random += world.order) % 1 })
  const fleet = serversOf(t, servers)
  const log: string[] = []
  const live = new LiveCredentials(new Changeable('redis://u:p@127.0.0.1:7000'), () => undefined)
  const nodes = new ClusterNodes(
    seeds.map((port) => ({ host: '127.0.0.1', port })),
    live,
    {
      ask: async (node) => void log.push(`ask ${node.name}`),
      unreached: (node, reason) => void log.push(`unreached ${node.name}: ${reason}`),
    },
  )
  t.teardown(() => nodes.close())
  const ports = () => nodes.masters.map(({ port }) => port)
  const asked = () =>
    fleet
      .sent()
      .filter((each) => each.endsWith('CLUSTER SLOTS'))
      .map((each) => Number(each.slice(0, 4)))
  return { ...fleet, world, nodes, log, live, ports, asked }
}

await test('the masters are those that one of them names, which a node of REDIS_URL has named', async (t) => {
  const { nodes, ports, asked, live, log } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  t.same(ports(), [])
  t.throws(() => nodes.ownerOf(LOW), { name: 'Unsent', cause: { message: 'no master has the slot' } })
  t.equal(await nodes.read(), true)
  t.same(ports(), [7000, 7001])
  t.same(asked(), [7000, 7000], 'once as one that is named, and once as a master')
  t.same([nodes.ownerOf(LOW).port, nodes.ownerOf(HIGH).port], [7000, 7001])
  const [node] = nodes.masters
  t.match(node, { name: '127.0.0.1:7000', host: '127.0.0.1', port: 7000, options: { credentialsProvider: live } })
  t.same([node?.owns(LOW), node?.owns(HIGH)], [true, false])
  t.same(log, [])
})

await test('of the nodes that REDIS_URL names the first to know slots is believed, and without any nothing is known', async (t) => {
  const { nodes, servers, ports } = nodesOf(t, { 7001: telling([]) }, [7000, 7001, 7002])
  t.equal(await nodes.read(), false)
  servers[7002] = telling(slotsOf(7002))
  t.equal(await nodes.read(), true)
  t.same(ports(), [7002])
})

await test('a master tells of the others, and one that does not name itself is not believed', async (t) => {
  const { nodes, servers, ports, asked } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  asked()
  t.equal(await nodes.read(), true)
  t.same(asked(), [7000])
  servers[7000] = telling(slotsOf(7003))
  servers[7001] = telling(slotsOf(7001, 7002))
  t.equal(await nodes.read(), true)
  t.same(asked(), [7000, 7001])
  t.same(ports(), [7001, 7002])
})

await test('where no master tells, the nodes of REDIS_URL are asked once more', async (t) => {
  const { nodes, servers, ports, asked } = nodesOf(t, { 7000: telling(slotsOf(7001)), 7001: telling(slotsOf(7001)) })
  t.equal(await nodes.read(), true)
  asked()
  servers[7001] = telling(slotsOf(7002))
  servers[7000] = telling(slotsOf(7002))
  servers[7002] = telling(slotsOf(7002))
  t.equal(await nodes.read(), true)
  t.same([asked(), ports()], [[7001, 7000, 7002], [7002]])
})

await test('any of the masters is asked first', async (t) => {
  const { nodes, world, asked } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  asked()
  world.order = -0.01
  await nodes.read()
  t.same(asked(), [7001])
})

await test("a slot without a master is nobody's", async (t) => {
  const { nodes } = nodesOf(t, { 7000: telling([[0, 8191, ['127.0.0.1', 7000]]]) })
  await nodes.read()
  t.same([nodes.masters[0]?.owns(LOW), nodes.masters[0]?.owns(HIGH)], [true, false])
  t.throws(() => nodes.ownerOf(HIGH), { name: 'Unsent' })
})

await test('a master that is silent for a second is passed over', async (t) => {
  const { nodes, servers, asked } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  asked()
  servers[7000] = master({ CLUSTER: () => new Promise(() => undefined) })
  const limit = new HeldTimers(t, 'setTimeout', 1000)
  const reading = nodes.read()
  await turn()
  limit.run()
  t.equal(await reading, true)
  t.same(asked(), [7000, 7001])
})

await test('what a node did has the slots read from another one, a second after the last time at the earliest', async (t) => {
  const pass = stoppedClocks(t)
  const pause = Promise.withResolvers<undefined>()
  const pauses: number[] = []
  const { nodes, ports, asked } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  asked()
  // Those who have imported it get the new one.
  t.teardown(syncBuiltinESMExports)
  replace(t, promises, 'setTimeout', (ms: number) => (pauses.push(ms), pause.promise))
  syncBuiltinESMExports()
  const [first] = nodes.masters
  pass(970)
  const rereading = nodes.reread(first)
  t.equal(nodes.reread(), rereading, 'those who ask together share it')
  t.equal(nodes.read(), rereading)
  await turn()
  t.same([asked(), pauses], [[], [30]], 'it is too early')
  pause.resolve(undefined)
  t.equal(await rereading, true)
  t.same(asked(), [7001])
  pass(1000)
  t.equal(await nodes.reread(), true)
  t.same(pauses, [30], 'it is late enough')
  t.same([asked(), ports()], [[7000], [7000, 7001]])
})

await test('a slot that has moved is known at once, and its new owner may be a new node', async (t) => {
  const { nodes } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH), 7002: master() })
  await nodes.read()
  const owner = nodes.noteMoved(slotOf(LOW), { host: '127.0.0.1', port: 7002 })
  t.same([owner.port, nodes.ownerOf(LOW)], [7002, owner])
  t.equal(nodes.at({ host: '127.0.0.1', port: 7002 }), owner, 'it is the same each time')
  t.same([owner.owns(LOW), nodes.masters[0]?.owns(LOW)], [true, false])
})

await test('a node that is no master any more is closed once its replies are there', async (t) => {
  const { nodes, servers, ports, sent } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  await Promise.all(nodes.masters.map(({ connection }) => connection.opened()))
  const [, second] = nodes.masters
  servers[7000] = telling(slotsOf(7000))
  sent()
  await nodes.read()
  t.same(ports(), [7000])
  t.ok(sent().includes('7001 closed softly'))
  t.not(nodes.at({ host: '127.0.0.1', port: 7001 }), second, 'it is another one if it comes back')
})

await test('a node that cannot be reached is told, and one that is back is asked at once', async (t) => {
  const { nodes, servers, log, asked, lose } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  await Promise.all(nodes.masters.map(({ connection }) => connection.opened()))
  clockAhead(t)(1000)
  asked()
  lose(7001)
  await until(() => log.length > 0)
  t.same(log.splice(0), ['ask 127.0.0.1:7001'], 'a connection that is reset says nothing of the node')
  t.same(asked(), [7000], 'but there may be another one in its place')
  servers[7001] = undefined
  lose(7001)
  await until(() => log.length > 0)
  t.same(log.splice(0, 1), ['unreached 127.0.0.1:7001: ECONNREFUSED'])
  servers[7001] = telling(BOTH)
  await until(() => log.includes('ask 127.0.0.1:7001'))
})

await test('after the close there are no nodes, and nothing is read', async (t) => {
  const { nodes, ports, open, sent } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  await Promise.all(nodes.masters.map(({ connection }) => connection.opened()))
  sent()
  nodes.close()
  t.same([ports(), open()], [[], []])
  t.throws(() => nodes.ownerOf(LOW), { name: 'Unsent' })
  t.throws(() => nodes.at({ host: '127.0.0.1', port: 7000 }), { message: 'closed' })
  t.equal(await nodes.read(), false)
  t.same(
    sent().filter((each) => !each.endsWith('closed')),
    [],
  )
})

await test('what is read while the nodes are closed does not count', async (t) => {
  const answer = Promise.withResolvers<unknown>()
  const { nodes, servers, ports } = nodesOf(t, { 7000: telling(BOTH), 7001: telling(BOTH) })
  await nodes.read()
  servers[7000] = telling(() => answer.promise)
  const reading = nodes.read()
  await turn()
  nodes.close()
  answer.resolve(BOTH)
  t.equal(await reading, false)
  t.same(ports(), [])
})
