import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { probeMasters, probeRedis } from '../../src/store/probe.ts'
import { ADVICE } from '../../src/store/servers/causes.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { master, serversOf, slotsOf } from '../support/redis/servers-alone.ts'

const OPTIONS = { timeoutMs: 1000, replicas: 0, hasSubjects: true }
const setting = 'REDIS_URL'
const ok = (port: number) => ({
  is: 'ok',
  setting,
  message: `127.0.0.1:${port} is Redis 7.2.4, a master that takes writes`,
})
const replica = master({ HELLO: { server: 'redis', version: '7.2.4', role: 'slave' } })
const isReplica = (port: number, is = 'failed') => ({
  is,
  setting,
  message: `127.0.0.1:${port} is Redis 7.2.4, but a replica, which takes no writes`,
  advice: ADVICE['READONLY'],
})

await test('the check of a single server tries what the store does there, under the name that REDIS_URL gives it', async (t) => {
  const { servers, sent } = serversOf(t, { 7000: master(), 6379: master() })
  t.same(await probeRedis('redis://127.0.0.1:7000', OPTIONS), [ok(7000)])
  const words = sent()
  t.ok(words.some((each) => each.startsWith('7000 INFO cluster')))
  t.ok(words.some((each) => each.startsWith('7000 EVAL') && /bff:1:probe:[\w-]{36}/.test(each)))
  servers[7000] = master({ CLIENT: new ErrorReply('NOPERM no') })
  t.match(await probeRedis('redis://127.0.0.1:7000', OPTIONS), [
    { is: 'failed', message: /no right to CLIENT TRACKING$/ },
  ])
  t.same(await probeRedis('redis://127.0.0.1', OPTIONS), [ok(6379)])
  t.same(await probeRedis('http://127.0.0.1', OPTIONS), [
    { is: 'failed', setting, message: 'not the address of a Redis' },
  ])
})

const names = (port: number) => master({ SENTINEL: ['127.0.0.1', `${port}`] })

await test('the check asks all Sentinels, and tries the servers that they name', async (t) => {
  const unknown = master({ SENTINEL: null })
  const url = 'redis+sentinel://127.0.0.1:1,127.0.0.1:2/bff'
  const { servers, sent } = serversOf(t, { 1: names(7000), 2: names(7000), 7000: master() })
  t.same(await probeRedis(url, OPTIONS), [ok(7000)])
  const words = sent()
  t.equal(words.filter((each) => each.startsWith('7000 HELLO')).length, 1, 'each once')
  t.ok(words.includes('2 SENTINEL GET-MASTER-ADDR-BY-NAME bff'))
  t.ok(words.some((each) => each.startsWith('7000 INFO cluster')))
  t.ok(words.some((each) => each.startsWith('7000 EVAL') && /bff:1:probe:[\w-]{36}/.test(each)))
  servers[1] = unknown
  t.same(await probeRedis(url, OPTIONS), [ok(7000)])
  servers[2] = unknown
  t.same(await probeRedis(url, OPTIONS), [
    {
      is: 'failed',
      setting,
      message: 'no Sentinel of 127.0.0.1:1, 127.0.0.1:2 names a master "bff"',
      advice: 'Check the Sentinels, and the name of the master at the end of REDIS_URL.',
    },
  ])
  servers[1] = names(7001)
  servers[2] = names(7000)
  servers[7001] = replica
  const differ = {
    is: 'warning',
    setting,
    message: 'the Sentinels name different masters: 127.0.0.1:7001, 127.0.0.1:7000',
    advice: 'One of them may be cut off from the others: ask each with SENTINEL CKQUORUM.',
  }
  t.same(await probeRedis(url, OPTIONS), [ok(7000), differ], 'one that does not serve is not it')
  servers[7000] = replica
  t.same(await probeRedis(url, OPTIONS), [isReplica(7001), isReplica(7000), differ])
})

const CLUSTER = 'redis+cluster://127.0.0.1:7000,127.0.0.1:7001'

await test('the check tries each master of a Cluster with a key of its own, and needs no tracking there', async (t) => {
  const SLOTS = slotsOf(7000, 7001)
  const node = (changes: Readonly<Record<string, unknown>> = {}) => master({ CLUSTER: SLOTS, ...changes })
  const untracked = { CLIENT: new ErrorReply('NOPERM no') }
  const { servers, sent } = serversOf(t, { 7000: node(untracked), 7001: node(untracked) })
  t.same(await probeRedis(CLUSTER, OPTIONS), [ok(7000), ok(7001)])
  const words = sent()
  t.notOk(words.some((each) => each.includes('INFO cluster')))
  for (const port of [7000, 7001]) {
    const keys = words.flatMap((each) =>
      each.startsWith(`${port} EVAL`) ? (/bff:1:probe:[\w.-]+/.exec(each) ?? []) : [],
    )
    t.ok(keys.length > 0)
    t.ok(
      keys.every((key) => slotOf(key) < 8192 === (port === 7000)),
      `those of ${port}`,
    )
  }
  servers[7001] = undefined
  const unreached = { message: /^127\.0\.0\.1:7001 cannot be used \(ECONNREFUSED\)$/, is: 'warning' }
  const found = await probeRedis(CLUSTER, OPTIONS)
  t.match(found, [ok(7000), unreached, unreached], 'as a master, and as one that is named')
  t.equal(found.length, 3)
  servers[7000] = undefined
  t.match(await probeRedis(CLUSTER, OPTIONS), [{ is: 'failed' }, { is: 'failed' }])
})

await test('the check of a Cluster asks for the rights that are needed there', async (t) => {
  serversOf(t, { 7001: master({ CLUSTER: slotsOf(7001), EVAL: ['HSET hash'] }) })
  t.match(await probeRedis('redis+cluster://127.0.0.1:7001', OPTIONS), [{ is: 'failed', message: /no right to HSET$/ }])
})

await test('the check of a Cluster names nodes that tell nothing, and slots that have no master', async (t) => {
  const forbidden = master({ CLUSTER: new ErrorReply('NOPERM no') })
  const { servers } = serversOf(t, { 7000: forbidden, 7001: master({ CLUSTER: slotsOf(7001) }) })
  const noRight = (is: string) => ({
    is,
    setting,
    message: '127.0.0.1:7000 forbids CLUSTER SLOTS to this user',
    advice: ADVICE['NOPERM'],
  })
  t.same(await probeRedis(CLUSTER, OPTIONS), [ok(7001), noRight('warning')])
  servers[7001] = forbidden
  t.match(await probeRedis(CLUSTER, OPTIONS), [noRight('failed'), { is: 'failed' }])
  servers[7001] = master({ CLUSTER: [] })
  const noSlots = { is: 'failed', setting, message: 'no master has a slot', advice: ADVICE['CLUSTERDOWN'] }
  t.same(await probeRedis(CLUSTER, OPTIONS), [noSlots, noRight('failed')])
  servers[7000] = master({ CLUSTER: [] })
  servers[7001] = master({ CLUSTER: [[8192, 16_383, ['127.0.0.1', 7001]]] })
  t.same(
    await probeRedis(CLUSTER, OPTIONS),
    [
      ok(7001),
      { is: 'warning', setting, message: '8192 of 16384 slots have no master', advice: ADVICE['CLUSTERDOWN'] },
    ],
    'one that was taken out of the Cluster knows of no slots',
  )
})

await test('the findings are told by master, and clocks that differ are compared', async (t) => {
  const behind = master({ CLUSTER: slotsOf(7000, 7001), TIME: [String(Math.floor(Date.now() / 1000) - 60), '0'] })
  serversOf(t, { 7000: master({ CLUSTER: slotsOf(7000, 7001) }), 7001: behind })
  const { masters, others } = await probeMasters(CLUSTER, OPTIONS)
  t.match(masters, [{ results: [ok(7000)] }, { results: [ok(7001)] }])
  t.same(others, [])
  const all = await probeRedis(CLUSTER, OPTIONS)
  t.match(all.at(-1), { is: 'warning', message: /^the clocks of the masters of Redis are up to / })
  t.same(await probeMasters('', OPTIONS), {
    masters: [],
    others: [{ is: 'failed', setting, message: 'not the address of a Redis' }],
  })
})
