import { test } from 'tap'
import { LIMITS } from '../../src/store/limit-commands.ts'
import { MemoryValues } from '../../src/store/memory-values.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

/** What is sent to Redis, without the text of the script. */
async function sentBy(send: (redis: never, skewMs: never) => unknown): Promise<readonly unknown[]> {
  const sent: unknown[] = []
  const redis = {
    send: async (key: string, [command, , ...words]: readonly unknown[]) => void sent.push([key, command, ...words]),
  }
  await send(redis as never, undefined as never)
  return sent
}

await test('each limit is asked for under its key, with what a holder states', async (t) => {
  const { claim, hold, leaseCalls, enqueue } = LIMITS
  const holding = { key: 'k', holder: 'me', count: 2 }
  t.same(await sentBy((redis, skewMs) => claim.send(redis, skewMs, holding, 3)), [
    ['k', 'EVAL', '1', 'k', 'me', '2', '3'],
  ])
  t.same(await sentBy((redis, skewMs) => hold.send(redis, skewMs, [holding, { ...holding, key: 'l', count: 0 }])), [
    ['k', 'EVAL', '1', 'k', 'me', '2', '1000000000'],
    ['l', 'EVAL', '1', 'l', 'me', '0', '1000000000'],
  ])
  t.same(await sentBy((redis, skewMs) => leaseCalls.send(redis, skewMs, 'k', 60)), [['k', 'EVAL', '1', 'k', '60']])
  t.same(await sentBy((redis, skewMs) => enqueue.send(redis, skewMs, 'k', 10.2)), [['k', 'EVAL', '1', 'k', '11']])
})

await test('a process alone leases all calls of a minute once, and again in the next minute', (t) => {
  const pass = stoppedClocks(t)
  const values = new MemoryValues(() => undefined)
  // 20 s of a minute have passed.
  pass(60_000 - (Date.now() % 60_000) + 20_000)
  const lease = (key = 'one') => LIMITS.leaseCalls.memory(values, key, 30)
  t.same(
    [lease(), lease(), lease('other')],
    [
      { calls: 30, endsInMs: 40_000 },
      { calls: 0, endsInMs: 40_000 },
      { calls: 30, endsInMs: 40_000 },
    ],
  )
  pass(39_999)
  t.same(lease(), { calls: 0, endsInMs: 1 })
  pass(2)
  t.same(lease(), { calls: 30, endsInMs: 59_999 })
  t.end()
})

await test('a process alone claims up to the limit, and waits for nobody', (t) => {
  const values = new MemoryValues(() => undefined)
  const claim = (count: number) => LIMITS.claim.memory(values, { key: 'k', holder: 'me', count }, 2)
  t.same([claim(1), claim(2), claim(3)], [true, true, false])
  t.equal(LIMITS.hold.memory(values, []), undefined)
  t.equal(LIMITS.enqueue.memory(values, 'k', 3000), 0)
  t.end()
})

await test('instances share permits, the calls of a minute and a queue', async (t) => {
  const redis = await testRedis(t)
  const { limits } = await connectedStore(t, redis.url)
  const claim = (holder: string, count: number) => limits.claim({ key: 'k', holder, count }, 2)
  t.same([await claim('a', 2), await claim('b', 1)], [true, false])
  t.equal(await limits.hold([{ key: 'k', holder: 'a', count: 1 }]), undefined)
  t.same([await claim('b', 1), await claim('c', 1)], [true, false])
  const { calls, endsInMs } = await limits.leaseCalls('calls', 1000)
  t.equal(calls, 500)
  t.ok(endsInMs > 0 && endsInMs <= 60_000)
  t.equal(await limits.enqueue('queue', 30_000), 0)
  const second = await limits.enqueue('queue', 30_000)
  t.ok(second > 20_000 && second <= 30_000)
})
