import { randomUUID } from 'node:crypto'
import type { CheckResult } from '../config/setting-rule.ts'
import { parseRedisUrl, type RedisAddress, type RedisNode } from '../config/redis-address.ts'
import { ADVICE } from './servers/causes.ts'
import { addressOf, readSlots, slotOf, type Slots } from './links/cluster-slots.ts'
import { withConnection } from './links/connection.ts'
import { probeKey } from './keys.ts'
import { askSentinel } from './links/link-to.ts'
import { keyOf } from './servers/master-probe.ts'
import { nodeOptions, replyCode } from './links/redis-link.ts'
import type { Uses } from './servers/rights.ts'
import { checkServer, compareAll, failed, serves, unreachable, warning, type Findings } from './servers/server-check.ts'

/** The use that is made of the servers, and the time in which it must be found out whether they serve for that. */
type ProbeOptions = Omit<Uses, 'tracks'>

/** The findings at the servers that a URL leads to. */
interface Probe {
  readonly masters: readonly Findings[]
  /** Faults of other servers, and of all of them together. */
  readonly others: readonly CheckResult[]
}

/**
 * Tries on each master that REDIS_URL leads to what the store does there. While some masters of a Cluster serve, the others are
 * warnings.
 * @returns at least one result for each
 */
export async function probeRedis(redisUrl: string, options: ProbeOptions): Promise<CheckResult[]> {
  const { masters, others } = await probeMasters(redisUrl, options)
  const all = [...masters.flatMap(({ results }) => results), ...compareAll(masters), ...others]
  if (!masters.some(serves)) return all
  return all.map((result) => (result.is === 'failed' ? warning(result.message, result.advice) : result))
}

/** The same, by master and whatever the others do. */
export async function probeMasters(redisUrl: string, options: ProbeOptions): Promise<Probe> {
  const address = parseRedisUrl(redisUrl)
  const uses = { ...options, tracks: true }
  switch (address?.is) {
    case undefined:
      return { masters: [], others: [failed('not the address of a Redis')] }
    case 'single': {
      const { hostname, port } = new URL(address.url)
      const name = `${hostname}:${port || 6379}`
      return { masters: [await checkServer({ url: address.url }, name, probeKey(randomUUID()), uses)], others: [] }
    }
    case 'cluster':
      return probeCluster(address, { ...options, tracks: false })
    case 'sentinel':
      return probeSentinels(address, uses)
  }
}

async function probeSentinels(
  { nodes, access, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  uses: Uses,
): Promise<Probe> {
  const replies = await Promise.all(nodes.map((node) => askSentinel(node, access, name)))
  const named = new Map(replies.flatMap((reply) => (reply === undefined ? [] : [[addressOf(reply), reply] as const])))
  if (named.size === 0) {
    const advice = 'Check the Sentinels, and the name of the master at the end of REDIS_URL.'
    const message = `no Sentinel of ${nodes.map(addressOf).join(', ')} names a master "${name}"`
    return { masters: [], others: [failed(message, advice)] }
  }
  const checks = [...named].map(([address, master]) =>
    checkServer(nodeOptions(master, access), address, probeKey(randomUUID()), uses),
  )
  const checked = await Promise.all(checks)
  const masters = checked.some(serves) ? checked.filter(serves) : checked
  if (named.size === 1) return { masters, others: [] }
  const advice = 'One of them may be cut off from the others: ask each with SENTINEL CKQUORUM.'
  return { masters, others: [warning(`the Sentinels name different masters: ${[...named.keys()].join(', ')}`, advice)] }
}

async function probeCluster({ nodes, access }: Extract<RedisAddress, { is: 'cluster' }>, uses: Uses): Promise<Probe> {
  const asked = await Promise.all(
    nodes.map(async (node): Promise<Slots | CheckResult> => {
      try {
        return await withConnection(nodeOptions(node, access), uses.timeoutMs, (connection) =>
          readSlots(connection, node),
        )
      } catch (error) {
        const code = replyCode(error)
        if (code === 'NOPERM') return failed(`${addressOf(node)} forbids CLUSTER SLOTS to this user`, ADVICE['NOPERM'])
        return unreachable(error, addressOf(node))
      }
    }),
  )
  const silent = asked.filter((answer) => 'is' in answer)
  const told = asked.filter((answer) => 'masters' in answer)
  // One that was taken out of the Cluster may go on running, and knows of no slots.
  const slots = told.find(({ masters }) => masters.length > 0) ?? told[0]
  if (slots === undefined) return { masters: [], others: silent }
  const { masters, owners } = slots
  if (masters.length === 0)
    return { masters: [], others: [failed('no master has a slot', ADVICE['CLUSTERDOWN']), ...silent] }
  const missing = owners.filter((owner) => owner === undefined).length
  const holes =
    missing === 0 ? [] : [warning(`${missing} of ${owners.length} slots have no master`, ADVICE['CLUSTERDOWN'])]
  const check = (master: RedisNode): Promise<Findings> =>
    checkServer(nodeOptions(master, access), addressOf(master), keyAt(master, slots), uses)
  return { masters: await Promise.all(masters.map(check)), others: [...holes, ...silent] }
}

/** A key of a slot that a master owns. */
function keyAt(master: RedisNode, { owners }: Slots): string {
  const owns = (key: string): boolean => {
    const owner = owners[slotOf(key)]
    return owner !== undefined && addressOf(owner) === addressOf(master)
  }
  // Only masters that own slots are asked.
  return keyOf({ owns }) ?? ''
}
