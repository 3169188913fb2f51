import { test, type Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import type { Connection } from '../../src/store/links/connection.ts'
import type { RedisLink } from '../../src/store/links/redis-link.ts'
import { readMemory, replicationWarnings, ServerFacts } from '../../src/store/servers/server-facts.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { setImmediate as turn } from 'node:timers/promises'

interface Master {
  sessions: number | Error
  memory: Record<string, string> | Error
  replication?: Record<string, string> | Error
  persistence?: Record<string, string>
}

const given = async <Reply>(reply: Reply | Error): Promise<Reply> => {
  if (reply instanceof Error) throw reply
  return reply
}

/** The facts of masters that answer as a test says. */
function factsOf(t: Test, masters: Master[]) {
  const asked: unknown[] = []
  const world = { masters, wait: undefined as Promise<undefined> | undefined }
  const connections = () =>
    world.masters.map(({ sessions, memory, replication = {}, persistence = {} }) => ({
      eval: async (_script: string, options: unknown) => {
        asked.push(options)
        await world.wait
        return given(sessions)
      },
      info: async (section: string) => {
        asked.push(section)
        await world.wait
        return given(section === 'memory' ? memory : section === 'replication' ? replication : persistence)
      },
    }))
  const link = {
    askMasters: (question: (master: Connection) => Promise<unknown>) =>
      Promise.all(connections().map((each) => question(each as unknown as Connection).catch(() => undefined))),
  } as unknown as RedisLink
  const facts = new ServerFacts(link)
  t.teardown(() => facts.close())
  return { facts, world, asked: () => asked.splice(0) }
}

const memory = (used: number, max: number, uncounted = 0): Record<string, string> => ({
  used_memory: `${used}`,
  maxmemory: `${max}`,
  mem_not_counted_for_evict: `${uncounted}`,
})

await test('sessions are those of all masters, and the memory is that of the one that is fullest', async (t) => {
  const fullest = (...memories: Record<string, string>[]) =>
    factsOf(
      t,
      memories.map((each, at) => ({ sessions: at + 1, memory: each })),
    ).facts.read()
  t.same(await fullest(memory(50, 100), memory(90, 200)), { sessions: 3, memory: { usedBytes: 50, maxBytes: 100 } })
  t.same(await fullest(memory(40, 100), memory(90, 200)), { sessions: 3, memory: { usedBytes: 90, maxBytes: 200 } })
  t.match(await fullest(memory(1, 100), memory(900, 0)), { memory: { usedBytes: 1 } }, 'one without a limit is last')
  t.match(await fullest(memory(10, 0), memory(900, 0)), { memory: { usedBytes: 900 } }, 'or the one that uses most')
  t.match(await fullest(memory(10, 100), memory(20, 200)), { memory: { usedBytes: 20 } })
})

await test('what a server does not tell is left out, and the rest is told', async (t) => {
  const no = new Error('NOPERM')
  const ofOne = (master: Master) => factsOf(t, [master]).facts.read()
  const one = await ofOne({ sessions: no, memory: memory(1, 2) })
  t.same([one, Object.keys(one ?? {})], [{ memory: { usedBytes: 1, maxBytes: 2 } }, ['memory']])
  t.same(await ofOne({ sessions: 4, memory: no }), { sessions: 4 })
  t.equal(await ofOne({ sessions: no, memory: no }), undefined)
  const lost = { sessions: no, memory: no }
  const others = [
    { sessions: 1, memory: memory(1, 2) },
    { sessions: 2, memory: memory(3, 4) },
  ]
  // The sum would be too small, but the fullest of the others may be the fullest of all.
  t.same(await factsOf(t, [lost, ...others]).facts.read(), { memory: { usedBytes: 3, maxBytes: 4 } })
})

await test('the servers are asked every five seconds at most, and what they said holds for 20 seconds', async (t) => {
  const pass = stoppedClocks(t)
  const { facts, world, asked } = factsOf(t, [{ sessions: 1, memory: memory(1, 2) }])
  t.match(await facts.read(), { sessions: 1 })
  t.same(asked(), [{ keys: [], arguments: ['bff:1:session:', `${sessionKey('').length}`] }, 'memory'])
  world.masters = [{ sessions: 2, memory: memory(1, 2) }]
  pass(4999)
  t.match(await facts.read(), { sessions: 1 })
  t.same(asked(), [])
  pass(1)
  t.match(await facts.read(), { sessions: 2 })
  world.masters = [{ sessions: new Error('lost'), memory: new Error('lost') }]
  pass(19_999)
  t.match(await facts.read(), { sessions: 2 })
  pass(1)
  t.equal(await facts.read(), undefined)
})

await test('a scrape waits a quarter of a second, and the servers have two, and are asked by one at a time', async (t) => {
  const { facts, world, asked } = factsOf(t, [{ sessions: 1, memory: memory(1, 2) }])
  const answer = Promise.withResolvers<undefined>()
  world.wait = answer.promise
  const scrape = new HeldTimers(t, 'setTimeout', 250)
  const replies = new HeldTimers(t, 'setTimeout', 2000)
  const pass = stoppedClocks(t)
  const read = facts.read()
  await turn()
  t.equal(asked().length, 2)
  scrape.run()
  t.equal(await read, undefined)
  pass(6000)
  const second = facts.read()
  await turn()
  t.same([asked(), replies.size], [[], 2])
  answer.resolve(undefined)
  t.match(await second, { sessions: 1 })
  world.wait = new Promise(() => undefined)
  pass(6000)
  const third = facts.read()
  await turn()
  replies.run()
  t.match(await third, { sessions: 1 }, 'what is known')
})

await test('replicas are watched every 15 seconds, first after one, and a server that is lost keeps nobody from the others', async (t) => {
  const [first, later] = [new HeldTimers(t, 'setTimeout', 1000), new HeldTimers(t, 'setTimeout', 15_000)]
  const bad = { replication: { role: 'master', connected_slaves: '0' }, persistence: { aof_enabled: '0' } }
  const master = { sessions: 0, memory: {}, ...bad }
  const { facts, world, asked } = factsOf(t, [master, { ...master }])
  t.same(facts.warnings, [])
  facts.watchReplication(1)
  t.same([first.size, later.size], [1, 0])
  first.run()
  await turn()
  t.same(asked(), ['replication', 'persistence', 'replication', 'persistence'])
  t.match(facts.warnings, { length: 2, 0: /Set appendonly yes/, 1: /^replicas of Redis: 0; IDEMPOTENCY_REPLICAS: 1/ })
  const lost = { ...master, replication: new Error('lost') }
  const crowded = { replication: { role: 'master', connected_slaves: '2' }, persistence: { aof_enabled: '1' } }
  for (const each of [lost, { ...master, ...crowded }]) {
    world.masters = [lost, each]
    later.run()
    await turn()
    t.match(facts.warnings, { 0: /appendonly/, 1: /: 0; / }, 'none is withdrawn')
  }
  t.match(facts.warnings, { length: 3, 2: /^replicas of Redis: 2;/ }, 'one of another server is added')
  world.masters = [
    { ...master, replication: { role: 'master', connected_slaves: '1' }, persistence: { aof_enabled: '1' } },
  ]
  later.run()
  await turn()
  t.same(facts.warnings, [])
  facts.close()
  t.equal(later.size, 0)
})

const of = (info: Record<string, string>, replicas: number): string =>
  replicationWarnings(info, replicas)
    .map((each) =>
      each.replace(
        /^(Redis has no append-only file|replicas of Redis: \d; \w+: \d).*(Set appendonly yes|Set \w+ to their number|are refused).*$/,
        '$1 … $2',
      ),
    )
    .join(' | ')

await test('an operator is warned of each fault of the replication, of a master alone', (t) => {
  t.equal(of({ role: 'master', connected_slaves: '1', aof_enabled: '1' }, 1), '')
  t.equal(of({ role: 'slave', connected_slaves: '2', aof_enabled: '1' }, 1), '')
  t.equal(of({ role: 'slave', connected_slaves: '0', aof_enabled: '1' }, 1), '')
  t.equal(of({ role: 'master' }, 0), '')
  t.equal(of({ aof_enabled: '0' }, 0), 'Redis has no append-only file … Set appendonly yes')
  t.equal(
    of({ role: 'master', connected_slaves: '2' }, 1),
    'replicas of Redis: 2; IDEMPOTENCY_REPLICAS: 1 … Set IDEMPOTENCY_REPLICAS to their number',
  )
  t.equal(of({ role: 'master' }, 1), 'replicas of Redis: 0; IDEMPOTENCY_REPLICAS: 1 … are refused')
  t.end()
})

await test('buffers of replicas and of the append-only file do not count as memory', (t) => {
  t.same(readMemory(memory(100, 200, 30)), { usedBytes: 70, maxBytes: 200 })
  t.same(readMemory(memory(10, 0, 30)), { usedBytes: 0, maxBytes: 0 })
  t.same(readMemory({}), { usedBytes: 0, maxBytes: 0 })
  t.end()
})

await test('Redis counts its sessions, and estimates their number where it has more keys', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  for (let count = 0; count < 3; count++) await store.create(sessionKey(`${count}`), 'v', Date.now() + 60_000)
  await store.create(`${sessionKey('0')}:left`, 'v', Date.now() + 60_000)
  t.match(await store.facts(), { sessions: 3, memory: { maxBytes: 0 } })
  const fill = "for at = 1, 600 do redis.call('SET', ARGV[1] .. string.format('%043d', at), '') end"
  await askRedis(redis, ['EVAL', fill, '0', 'bff:1:session:'])
  const { sessions = 0 } = (await (await connectedStore(t, redis.url)).facts()) ?? {}
  t.ok(sessions > 570 && sessions <= 604, `${sessions}`)
})
