import { ErrorReply } from '@redis/client'
import { test, type Test } from 'tap'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import type { MasterServer } from '../../src/store/links/redis-link.ts'
import { keyOf, MasterProbe } from '../../src/store/servers/master-probe.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'

/** A master that answers as a test says, and what it was asked. */
function masterOf(t: Test) {
  const pass = stoppedClocks(t)
  const asked: { key: string; keys: string[]; writes: boolean; isPlain: boolean }[] = []
  const world = {
    answer: async (): Promise<unknown> => [1_700_000_000_123, []],
    owns: (_key: string): boolean => true,
    pings: 0,
    ping: async (): Promise<unknown> => world.pings++,
  }
  const master = { name: 'one', options: {}, owns: (key: string) => world.owns(key) } as MasterServer
  const connection = {
    eval: async (_script: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }) => {
      asked.push({ key: keys[0] ?? '', keys, writes: args.join() === 'write', isPlain: args.length === 0 })
      return world.answer()
    },
    ping: () => world.ping(),
  }
  const probe = new MasterProbe()
  return { world, pass, asked: () => asked.splice(0), ask: () => probe.ask(master, connection) }
}

const SERVES = { refusal: undefined, refused: [] }

await test('a master that serves shows its clock, and is tried with a write once a minute', async (t) => {
  const { world, pass, asked, ask } = masterOf(t)
  const sentAt = performance.now()
  world.answer = async () => (pass(5), [1_700_000_000_123, []])
  t.same(await ask(), { ...SERVES, clock: { time: 1_700_000_000_123, sentAt, receivedAt: sentAt + 5 } })
  pass(59_994)
  await ask()
  pass(1)
  await ask()
  const [first, second, third] = asked()
  t.match(first?.key, /^bff:1:probe:[\w-]+\.0$/)
  t.same(first?.keys, [first?.key, `{${first?.key}}:hash`])
  t.same(
    [first, second, third].map((each) => each?.writes),
    [true, false, true],
  )
  t.same([second?.key, third?.key], [first?.key, first?.key])
  t.ok(second?.isPlain)
})

await test('a master that refuses writes is tried with one each time', async (t) => {
  const { world, asked, ask } = masterOf(t)
  for (const code of ['OOM', 'MISCONF']) {
    world.answer = () => Promise.reject(new ErrorReply(`${code} no`))
    t.same(await ask(), { refusal: code, refused: [], clock: undefined })
  }
  world.answer = () => Promise.reject(new ErrorReply('MOVED 1 host:1'))
  t.equal(await ask(), undefined)
  world.answer = async () => [1, []]
  await ask()
  await ask()
  t.same(
    asked().map(({ writes }) => writes),
    [true, true, true, true, false],
  )
})

await test('the commands that a user lacks are named once, whatever they are lacking for', async (t) => {
  const { world, ask } = masterOf(t)
  world.answer = async () => [null, ['SET key', 'SET hash', 'CLIENT TRACKING key', 'GET ']]
  t.same(await ask(), { refusal: undefined, refused: ['SET', 'CLIENT TRACKING', 'GET'], clock: undefined })
})

await test('a master that names another one for the key says nothing of itself', async (t) => {
  const { world, ask } = masterOf(t)
  for (const code of ['MOVED', 'ASK', 'TRYAGAIN', 'CROSSSLOT']) {
    world.answer = () => Promise.reject(new ErrorReply(`${code} 1 host:1`))
    t.equal(await ask(), undefined, code)
  }
})

await test('a server without EVAL does not know it, and one that is lost says nothing', async (t) => {
  const { world, ask } = masterOf(t)
  world.answer = () => Promise.reject(new ErrorReply("ERR unknown command 'EVAL'"))
  t.same(await ask(), { refusal: 'UNKNOWN', refused: ['EVAL'], clock: undefined })
  const lost = new Error('lost')
  world.answer = () => Promise.reject(lost)
  await t.rejects(ask(), lost)
})

await test('the key of the probe is one of the master, which is sought anew where its slot has moved', async (t) => {
  const { world, asked, ask } = masterOf(t)
  world.owns = (key) => slotOf(key) < 8192
  await ask()
  await ask()
  const [first, second] = asked()
  t.ok(slotOf(first?.key ?? '') < 8192)
  t.equal(second?.key, first?.key)
  world.owns = (key) => slotOf(key) >= 8192
  await ask()
  t.ok(slotOf(asked()[0]?.key ?? '') >= 8192)
  world.owns = () => false
  t.equal(await ask(), undefined)
  t.same([asked(), world.pings], [[], 1], 'it is asked for a sign of life')
  world.ping = () => Promise.reject(new Error('lost'))
  await t.rejects(ask(), { message: 'lost' })
})

await test('a key is found wherever a master owns one of the slots that are tried, and none where it owns none', (t) => {
  let tries = 0
  t.equal(keyOf({ owns: () => (tries++, false) }), undefined)
  t.equal(tries, 16_384)
  tries = 0
  t.match(keyOf({ owns: () => ++tries === 3 }), /^bff:1:probe:[\w-]+\.2$/)
  t.end()
})

await test('Redis is asked for its clock and rights, and the write leaves nothing behind', async (t) => {
  const redis = await testRedis(t)
  const client = await storeClient(t, { redis })
  const connection = {
    eval: (script: string, options: { keys: string[]; arguments: string[] }) => client.eval(script, options),
    ping: () => client.ping(),
  }
  const master: MasterServer = { name: 'one', options: {}, owns: () => true }
  const report = await new MasterProbe().ask(master, connection)
  t.match(report, SERVES)
  t.ok(Math.abs((report?.clock?.time ?? 0) - Date.now()) < 5000)
  t.equal(await askRedis(redis, ['DBSIZE']), 0)
  const stats = await client.info('commandstats')
  for (const name of ['set', 'del']) t.match(stats, new RegExp(`cmdstat_${name}:calls=1,`))
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '1'])
  t.match(await new MasterProbe().ask(master, connection), { refusal: 'OOM' })
})
