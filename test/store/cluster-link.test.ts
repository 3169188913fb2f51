import { ErrorReply } from '@redis/client'
import { syncBuiltinESMExports } from 'node:module'
import promises, { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { ClusterLink } from '../../src/store/links/cluster-link.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'
import { master, serversOf, slotsOf, type Server } from '../support/redis/servers-alone.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'
import { until } from '../support/time/until.ts'

const KEYS = Array.from({ length: 20 }, (_, at) => `key ${at}`)
const HIGH = KEYS.find((key) => slotOf(key) >= 8192) ?? ''
const SLOTS = { CLUSTER: slotsOf(7000, 7001) }
const [ONE, OTHER] = ['127.0.0.1:7000', '127.0.0.1:7001']

/** The link to a Cluster that answers as a test says, and what it tells. */
function linkOf(t: Test, servers: Record<number, Server | undefined>) {
  const world = {
    random: 0,
    opened: async (_name: string): Promise<void> => undefined,
    ask: async (): Promise<void> => undefined,
  }
  t.intercept(Math, 'random', { value: () => world.random })
  const fleet = serversOf(t, servers)
  const log: string[] = []
  const live = new LiveCredentials(new Changeable('redis://127.0.0.1:7000'), () => undefined)
  const link = new ClusterLink([{ host: '127.0.0.1', port: 7000 }], live)
  t.teardown(() => link.close())
  const open = () =>
    link.open({
      opened: async ({ name }) => (log.push(`opened ${name}`), world.opened(name)),
      ask: async ({ name }) => (log.push(`ask ${name}`), world.ask()),
      unreached: (name, reason) => void log.push(`unreached ${name}: ${reason}`),
      up: () => void log.push('up'),
      lost: (reason) => void log.push(`lost: ${reason}`),
      changed: () => undefined,
    })
  const asked = () => fleet.sent().filter((each) => each.endsWith('CLUSTER SLOTS'))
  return { ...fleet, link, open, world, log, asked, logged: () => log.splice(0) }
}

await test('the link is up once it knows of each master whether it serves', async (t) => {
  const { link, open, world, logged } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  t.equal(link.tracks, false)
  t.equal(link.anyServer(), undefined)
  t.same([...link.masterNames()], [])
  world.opened = async (name) => {
    if (name === OTHER) throw new Error('it is full')
  }
  await open()
  t.same(logged(), [`opened ${ONE}`, `opened ${OTHER}`, `unreached ${OTHER}: it is full`, 'up'])
  t.same([...link.masterNames()], [ONE, OTHER])
  t.equal(link.masterOf(HIGH).name, OTHER)
  t.equal(link.commands(), link.untracked())
  t.equal(await link.commands().send(HIGH, ['GET', HIGH]), '0')
  t.same(await link.askMasters((connection) => connection.ping()), ['PONG', 'PONG'])
  t.equal(link.anyServer()?.name, ONE)
  world.random = 0.99
  t.equal(link.anyServer()?.name, OTHER)
})

await test('a Cluster that is not there is tried again, and a master that does not reply for a second does not serve', async (t) => {
  const { servers, open, world, log, logged } = linkOf(t, {})
  world.random = 1
  const opening = open()
  await until(() => log.length >= 2)
  t.same(new Set(logged()), new Set(['lost: no node of the Cluster names its masters']))
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  world.opened = (name) => (name === ONE ? new Promise(() => undefined) : Promise.resolve())
  servers[7000] = servers[7001] = master(SLOTS)
  await until(() => log.includes(`opened ${OTHER}`))
  await turn()
  t.notOk(log.includes('up'))
  seconds.run()
  await opening
  t.same(log.slice(-2), [`unreached ${ONE}: ETIMEDOUT`, 'up'])
})

await test('the slots are read every five seconds, and when a server says that it is not the one', async (t) => {
  const polls = new HeldTimers(t, 'setTimeout', 5000)
  const ahead = clockAhead(t)
  const { link, open, asked } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  await open()
  asked()
  for (let count = 0; count < 2; count++) {
    polls.run()
    for (let turns = 0; turns < 10; turns++) await turn()
    t.equal(asked().length, 1)
  }
  ahead(1000)
  link.abandon()
  await until(() => asked().length > 0)
  await link.close()
  t.equal(polls.size, 0)
})

await test('masters are asked for a sign of life, and one that gives none for a second may have a successor', async (t) => {
  const ahead = clockAhead(t)
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const silence = new HeldTimers(t, 'setTimeout', 3000)
  const { link, open, world, log, logged, asked, sent } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  await open()
  logged()
  link.probe()
  t.same(logged(), [`ask ${ONE}`, `ask ${OTHER}`])
  world.ask = () => Promise.reject(new Error('it is full'))
  link.probe()
  await turn()
  t.same(logged(), [`ask ${ONE}`, `ask ${OTHER}`], 'any reply is one')
  sent()
  world.ask = () => new Promise(() => undefined)
  link.probe()
  logged()
  ahead(1000)
  seconds.run()
  await until(() => log.some((entry) => entry.startsWith('unreached')))
  t.ok(log.includes(`unreached ${ONE}: ETIMEDOUT`))
  await until(() => asked().length > 0, 'the slots are read')
  t.ok(silence.size > 0, 'it is not left so soon')
})

await test('a master that cannot be reached any more is told', async (t) => {
  const { link, servers, open, log, lose } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  await open()
  servers[7001] = undefined
  lose(7001)
  await until(() => log.includes(`unreached ${OTHER}: ECONNREFUSED`))
  t.same(await link.askMasters((connection) => connection.ping()), ['PONG', undefined], 'the other is asked as ever')
})

await test('a Cluster that is not there is tried more and more rarely', async (t) => {
  const pauses: number[] = []
  // Those who have imported it get the new one.
  t.teardown(syncBuiltinESMExports)
  replace(t, promises, 'setTimeout', (ms: number) => (pauses.push(ms), turn()))
  syncBuiltinESMExports()
  const { link, open } = linkOf(t, {})
  const opening = open()
  while (pauses.length < 3) await turn()
  await link.close()
  await opening
  const [first = 0, second = 0, third = 0] = pauses
  t.ok(first < second && second < third, `${first}, ${second}, ${third}`)
})

await test('a node that owns no slot is asked for nothing but a sign of life', async (t) => {
  const { link, servers, open, logged, sent } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  await open()
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  servers[7002] = master()
  servers[7001] = master({ ...SLOTS, GET: new ErrorReply('ASK 1 127.0.0.1:7002') })
  t.equal(await link.commands().send(HIGH, ['GET', HIGH]), '0')
  logged()
  sent()
  seconds.run()
  await turn()
  t.ok(sent().includes('7002 PING'))
  t.same(logged(), [])
})

await test('a link that is closed before it is up is never up, and leaves no connection', async (t) => {
  const { link, open, log, ...fleet } = linkOf(t, { 7000: master(SLOTS), 7001: master(SLOTS) })
  const opening = open()
  await link.close()
  await opening
  t.notOk(log.includes('up'))
  t.same(fleet.asked().length <= 1, true)
})
