import { randomUUID } from 'node:crypto'
import type { CheckResult } from '../config/setting-rule.ts'
import { parseRedisUrl, type RedisAddress, type RedisNode } from '../config/redis-address.ts'
import { ADVICE } from './causes.ts'
import { slotOf } from './cluster-probes.ts'
import { withConnection } from './connection.ts'
import { probeKey } from './keys.ts'
import { askSentinel } from './link-to.ts'
import { nodeOptions, replyCode } from './redis-link.ts'
import {
  checkServer,
  compareAll,
  failed,
  unreachable,
  warning,
  type Findings,
  type ServerUses,
} from './server-check.ts'

const SLOTS = 16_384

/** What the servers are used for, and how long it may take to find out whether they can be. */
type ProbeOptions = Omit<ServerUses, 'tracks'>

/**
 * Tries on each master that REDIS_URL leads to what the store does there. While some masters of a Cluster serve, the others are
 * warnings.
 * @returns at least one result for each
 */
export async function probeRedis(redisUrl: string, options: ProbeOptions): Promise<CheckResult[]> {
  const address = parseRedisUrl(redisUrl)
  switch (address?.is) {
    case undefined:
      return [failed('not the address of a Redis')]
    case 'single': {
      const { hostname, port } = new URL(address.url)
      const uses = { ...options, tracks: true }
      const name = `${hostname}:${port || 6379}`
      return resultsOf([await checkServer({ url: address.url }, name, probeKey(randomUUID()), uses)])
    }
    case 'cluster':
      return probeCluster(address, options)
    case 'sentinel':
      return probeSentinels(address, options)
  }
}

async function probeSentinels(
  { nodes, access, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  options: ProbeOptions,
): Promise<CheckResult[]> {
  const replies = await Promise.all(nodes.map((node) => askSentinel(node, access, name)))
  const master = replies.find((reply) => reply !== undefined)
  if (master === undefined) {
    const advice = 'Check the Sentinels, and the name of the master at the end of REDIS_URL.'
    return [failed(`no Sentinel of ${nodes.map(nameOf).join(', ')} names a master "${name}"`, advice)]
  }
  const uses = { ...options, tracks: true }
  return resultsOf([await checkServer(nodeOptions(master, access), nameOf(master), probeKey(randomUUID()), uses)])
}

/** A master of a Cluster, and its slots. */
interface Shard extends RedisNode {
  readonly from: number
  readonly to: number
}

async function probeCluster(
  { nodes, access }: Extract<RedisAddress, { is: 'cluster' }>,
  options: ProbeOptions,
): Promise<CheckResult[]> {
  const asked = await Promise.all(
    nodes.map(async (node): Promise<readonly Shard[] | CheckResult> => {
      try {
        return await withConnection(nodeOptions(node, access), options.timeoutMs, async (connection) =>
          shardsOf(await connection.sendCommand(['CLUSTER', 'SLOTS']), node),
        )
      } catch (error) {
        const code = replyCode(error)
        if (code === 'NOPERM') return failed(`${nameOf(node)} forbids CLUSTER SLOTS to this user`, ADVICE['NOPERM'])
        return unreachable(error, nameOf(node))
      }
    }),
  )
  const silent = asked.filter((answer): answer is CheckResult => !Array.isArray(answer))
  const shards = asked.find((answer): answer is readonly Shard[] => Array.isArray(answer))
  if (shards === undefined) return silent
  const masters = [...new Map(shards.map((shard) => [nameOf(shard), shard])).values()]
  const uses = { ...options, tracks: false }
  const findings = await Promise.all(
    masters.map((shard) => checkServer(nodeOptions(shard, access), nameOf(shard), keyIn(shard), uses)),
  )
  const missing = SLOTS - shards.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  const holes = missing === 0 ? [] : [warning(`${missing} of ${SLOTS} slots have no master`, ADVICE['CLUSTERDOWN'])]
  const all = [...resultsOf(findings), ...holes, ...silent]
  if (masters.length === 0) return [failed('no master has a slot', ADVICE['CLUSTERDOWN'])]
  if (!findings.some(({ results }) => results.every(({ is }) => is !== 'failed'))) return all
  return all.map((result) => (result.is === 'failed' ? warning(result.message, result.advice) : result))
}

function resultsOf(findings: readonly Findings[]): CheckResult[] {
  return [...findings.flatMap(({ results }) => results), ...compareAll(findings)]
}

/** Reads a reply to CLUSTER SLOTS. A node without a host has that of the node that was asked. */
function shardsOf(reply: unknown, { host }: RedisNode): Shard[] {
  return (reply as [number, number, [string | null, number]][]).map(([from, to, [name, port]]) => ({
    from,
    to,
    host: name === null || name === '' || name === '?' ? host : name,
    port,
  }))
}

function keyIn({ from, to }: Shard): string {
  const id = randomUUID()
  for (let count = 0; ; count++) {
    const key = probeKey(`${id}.${count}`)
    const slot = slotOf(key)
    if (slot >= from && slot <= to) return key
  }
}

function nameOf({ host, port }: RedisNode): string {
  return `${host}:${port}`
}
