import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { DurableRedis } from './durable-redis.ts'
import {
  askRedis,
  clusterPort,
  isWholeCluster,
  joinCluster,
  mastersOf,
  replicationOf,
  startSentinels,
} from './topologies.ts'
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
  /** Moves so many slots of a Cluster with the official tool while traffic runs. */
  reshard?(from: DurableRedis, to: DurableRedis, slots: number): Promise<void>
  /** Takes a master out of a Cluster with the official tool. It goes on running, and is none of the nodes any more. */
  remove?(master: DurableRedis): Promise<void>
}

const SLOTS = 16_384
const run = promisify(execFile)
const redisCli = (...words: string[]): Promise<unknown> => run('redis-cli', ['--cluster', ...words])
const idOf = async ({ url }: DurableRedis): Promise<string> => String(await askRedis({ url }, ['CLUSTER', 'MYID']))

async function reshard(from: DurableRedis, to: DurableRedis, slots: number): Promise<void> {
  const [fromId, toId] = await Promise.all([idOf(from), idOf(to)])
  const which = ['--cluster-from', fromId, '--cluster-to', toId, '--cluster-slots', String(slots), '--cluster-yes']
  await redisCli('reshard', `127.0.0.1:${to.port}`, ...which)
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
  const sentinels = await startSentinels(t, master.port, { replicas, downMs: DOWN_MS, failoverMs: 5000 })
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
  for (let count = 0; count < 6; count++) nodes.push(await DurableRedis.start(t, await clusterPort(), lines))
  joinCluster(nodes.map(({ port }) => `127.0.0.1:${port}`))
  const isWhole = () => isWholeCluster(nodes)
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
    reshard,
    async remove(master) {
      const kept = (await mastersOf(nodes)).find((node) => node !== master)
      if (kept === undefined) throw new Error('it is the last master')
      const host = `127.0.0.1:${kept.port}`
      const from = await idOf(master)
      await reshard(master, kept, SLOTS)
      nodes.splice(nodes.indexOf(master), 1)
      // Until all nodes have learnt of the move from each other, the tool refuses.
      const isRemoved = () =>
        redisCli('del-node', host, from).then(
          () => true,
          () => false,
        )
      await untilSlow(isRemoved, 'the tool removes the master')
    },
  }
}
