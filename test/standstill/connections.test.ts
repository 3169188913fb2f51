import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { LastingConnection } from '../../src/store/links/lasting-connection.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { standstillWorld } from '../support/sessions/standstill-world.ts'
import { until } from '../support/time/until.ts'

/** The connections to all servers, of those alone on which a command was the last. */
async function connections(nodes: readonly RedisProcess[], command = ''): Promise<string[]> {
  const lists = await Promise.all(nodes.map((node) => askRedis(node, ['CLIENT', 'LIST', 'TYPE', 'normal'])))
  const lines = lists.map((list) =>
    String(list)
      .split('\n')
      .filter((line) => line.includes(`cmd=${command}`)),
  )
  return lines.flatMap((found, at) => found.map((line) => `${at}: ${/^id=\d+/.exec(line)?.[0]}`))
}

/** A connection to a Redis of its own, and the reasons why it was lost. */
async function connected(t: Test) {
  const redis = await testRedis(t)
  const lost: string[] = []
  const connection = new LastingConnection({
    find: async () => ({ name: 'master', options: { url: redis.url }, owns: () => true }),
    lost: (reason) => void lost.push(reason),
  })
  t.teardown(() => connection.close())
  await connection.next()
  return { redis, lost, connection }
}

await test('a process that was stopped for six seconds keeps its connections to the masters of a Cluster', async (t) => {
  const world = await standstillWorld(t, { hasOperators: false, isCluster: true })
  let before: string[] = []
  // Of this process and of the one that is stopped. The latest command may also be another one.
  await until(
    async () => (before = await connections(world.nodes, 'eval')).length === 6,
    'both instances ask all masters',
  )
  world.stop()
  await delay(6000)
  world.goOn()
  // Whatever was given up is open again.
  await delay(2000)
  // A server that is busy may not reply at once, but no connection that was replaced comes back.
  const areKept = async (): Promise<boolean> => {
    const now = await connections(world.nodes)
    return before.every((each) => now.includes(each))
  }
  await until(areKept, 'none was replaced', 5000)
})

await test('a connection whose server has replied while this process stood still is kept, although its time is over', async (t) => {
  const { lost, connection } = await connected(t)
  const asked = connection.ask()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500)
  await asked
  t.same([lost, connection.isUp], [[], true])
})

await test('a connection whose server does not reply is given up, and opened again once the server goes on', async (t) => {
  const { redis, lost, connection } = await connected(t)
  redis.process.kill('SIGSTOP')
  t.teardown(() => redis.process.kill('SIGCONT'))
  await until(() => lost.length > 0, 'the silence is noticed', 6000)
  t.same([lost, connection.isUp], [['silence'], false])
  t.throws(() => connection.present, /no connection/)
  redis.process.kill('SIGCONT')
  await until(() => connection.isUp, 'the connection is open again')
})
