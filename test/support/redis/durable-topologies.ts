import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { startRedis } from '../../../sandbox/redis-process.ts'
import { DurableRedis } from './durable-redis.ts'
import { askRedis } from './topologies.ts'
import { untilSlow } from '../time/until.ts'

/** Long enough for a busy machine not to be taken for a dead master. */
const DOWN_MS = 4000

/** Redis servers that keep their data, and the ways in which a replica takes over from a master. */
export interface DurableTopology {
  /** The value of REDIS_URL. */
  readonly url: string
  readonly nodes: readonly DurableRedis[]
  /** The masters that reply. Two of one place while an old one lives on. */
  masters(): Promise<DurableRedis[]>
  /** Whether every server replies and every replica has what its master has. */
  isWhole(): Promise<boolean>
  /** Has a replica take over from a master that lives. @param isAbrupt without the old one's knowledge */
  replace(master: DurableRedis, isAbrupt: boolean): Promise<void>
}

/** A master with replicas, and three Sentinels. */
export async function durableSentinel(t: Test, replicas: number): Promise<DurableTopology> {
  const master = await DurableRedis.start(t, await freePort(), [])
  const nodes = [master]
  for (let count = 0; count < replicas; count++) {
    nodes.push(await DurableRedis.start(t, await freePort(), [`replicaof 127.0.0.1 ${master.port}`]))
  }
  const isWhole = async (): Promise<boolean> => {
    const infos = await Promise.all(nodes.map(replicationOf))
    return infos.some((info) => info.split('state=online').length === replicas + 1)
  }
  await untilSlow(isWhole, 'all replicas are online')
  const dir = t.testdir({})
  const lines = [
    `sentinel monitor bff 127.0.0.1 ${master.port} 2`,
    `sentinel down-after-milliseconds bff ${DOWN_MS}`,
    'sentinel failover-timeout bff 5000',
    '',
  ].join('\n')
  const sentinels = await Promise.all(
    ['one', 'two', 'three'].map(async (name) => {
      const file = join(dir, `${name}.conf`)
      await writeFile(file, lines)
      const sentinel = await startRedis(['--sentinel'], undefined, file)
      t.teardown(() => sentinel.close())
      return sentinel
    }),
  )
  for (const sentinel of sentinels) {
    await untilSlow(async () => String(await askRedis(sentinel, ['SENTINEL', 'CKQUORUM', 'bff'])).startsWith('OK 3'))
    await untilSlow(async () => {
      const known = await askRedis(sentinel, ['SENTINEL', 'REPLICAS', 'bff'])
      return Array.isArray(known) && known.length === replicas
    })
  }
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/bff`,
    nodes,
    masters: () => mastersOf(nodes),
    isWhole,
    async replace() {
      // The old master hears of it a second or two later, and takes writes until then.
      for (const sentinel of sentinels) {
        if ((await askRedis(sentinel, ['SENTINEL', 'FAILOVER', 'bff'])) === 'OK') return
      }
    },
  }
}

/** Three masters with a replica each. */
export async function durableCluster(t: Test): Promise<DurableTopology> {
  const lines = ['cluster-enabled yes', `cluster-node-timeout ${DOWN_MS}`]
  const nodes: DurableRedis[] = []
  // Nodes use the port 10000 above theirs to talk to each other.
  for (let count = 0; count < 6; count++) nodes.push(await DurableRedis.start(t, await freePort(10_000), lines))
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`)
  execFileSync('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-replicas', '1', '--cluster-yes'])
  const isWhole = async (): Promise<boolean> => {
    const infos = await Promise.all(nodes.map(replicationOf))
    const states = await Promise.all(nodes.map((node) => askRedis(node, ['CLUSTER', 'INFO'])))
    return (
      states.every((state) => String(state).includes('cluster_state:ok')) &&
      infos.every((info) => /state=online|master_link_status:up/.test(info))
    )
  }
  await untilSlow(isWhole, 'the cluster is whole')
  return {
    url: nodes.map(({ url }) => url).join(','),
    nodes,
    masters: () => mastersOf(nodes),
    isWhole,
    async replace(master, isAbrupt) {
      for (const node of nodes) {
        const info = await replicationOf(node)
        if (!info.includes(`master_port:${master.port}`)) continue
        await askRedis(node, ['CLUSTER', 'FAILOVER', ...(isAbrupt ? ['TAKEOVER'] : [])])
        return
      }
    },
  }
}

async function mastersOf(nodes: readonly DurableRedis[]): Promise<DurableRedis[]> {
  const infos = await Promise.all(nodes.map(replicationOf))
  return nodes.filter((_node, index) => infos[index]?.includes('role:master') === true)
}

async function replicationOf(redis: DurableRedis): Promise<string> {
  return String(await askRedis(redis, ['INFO', 'replication']))
}
