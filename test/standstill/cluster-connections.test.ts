import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { askRedis } from '../support/redis/topologies.ts'
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
