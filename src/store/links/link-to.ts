import type { RedisClientOptions } from '@redis/client'
import type { Changing } from '../../config/changing.ts'
import {
  parseRedisUrl,
  withoutCredentials,
  type RedisAccess,
  type RedisAddress,
  type RedisNode,
} from '../../config/redis-address.ts'
import { ClusterLink } from './cluster-link.ts'
import { dialing } from '../../peers/dialing.ts'
import { addressOf, readSlots } from './cluster-slots.ts'
import { withConnection } from './connection.ts'
import { LiveCredentials } from './live-credentials.ts'
import { MasterLink } from './master-link.ts'
import { nodeOptions, replyCode, type FindMaster, type RedisLink } from './redis-link.ts'

/** The timeout of one Sentinel, connecting included. */
const SENTINEL_TIMEOUT_MS = 1000

/**
 * The link to the servers that a URL names. Only its credentials may change.
 * @throws TypeError for an invalid URL, which the check of the settings rules out
 */
export function linkTo(url: Changing<string>, log: { warn(details: object, message: string): void }): RedisLink {
  const address = parseRedisUrl(url.current)
  const credentials = new LiveCredentials(url, (error, server) => {
    const code = replyCode(error)
    if (code !== undefined)
      log.warn({ code, server }, 'Redis refuses the new credentials: a connection keeps the former ones')
  })
  switch (address?.is) {
    case undefined:
      throw new TypeError('not the address of a Redis')
    case 'single': {
      const options = { url: withoutCredentials(address.url), credentialsProvider: credentials }
      const server = { name: 'master', options, owns: () => true }
      return new MasterLink(async () => server)
    }
    case 'sentinel':
      return new MasterLink(masterFinder(address, credentials))
    case 'cluster':
      return new ClusterLink(address.nodes, credentials)
  }
}

/** Finds the master through the Sentinels (redis.io/docs/reference/sentinel-clients). */
function masterFinder(
  { nodes, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  credentials: LiveCredentials,
): FindMaster {
  // The Sentinel that replied last comes first, unless nobody could use what it named: it may be cut off from the others.
  let sentinels = nodes
  return async (isInVain = false) => {
    if (isInVain) sentinels = [...sentinels.slice(1), ...sentinels.slice(0, 1)]
    for (const sentinel of sentinels) {
      const { access, former } = credentials
      const master = await askSentinel(sentinel, access, name, former)
      if (master === undefined) continue
      sentinels = [sentinel, ...sentinels.filter((other) => other !== sentinel)]
      return { name: addressOf(master), options: nodeOptions(master, credentials), owns: () => true }
    }
    return undefined
  }
}

/**
 * The server that a Sentinel names as the master. Undefined when the Sentinel does not reply, or knows no such master.
 * @param former other credentials, for a Sentinel that refuses the first
 */
export async function askSentinel(
  sentinel: RedisNode,
  access: RedisAccess,
  name: string,
  former?: RedisAccess,
): Promise<RedisNode | undefined> {
  const known = former === undefined ? [access] : [access, former]
  // Many Sentinels have no password although their servers have one. They take any password, but no user that they do not know.
  const ways = known.flatMap((way) => (way.password === undefined ? [way] : [way, { tls: way.tls }]))
  for (const way of ways) {
    try {
      return await askAs(sentinel, way, name)
    } catch (error) {
      // One that is silent would be so in any way, and each takes as long.
      if (replyCode(error) === undefined) return undefined
    }
  }
  return undefined
}

/** @throws Error where it does not reply, does not take the credentials, or knows no such master */
async function askAs(sentinel: RedisNode, access: RedisAccess, name: string): Promise<RedisNode> {
  const { socket, ...options } = nodeOptions(sentinel, access)
  // The names of the Sentinels may not keep that of the master waiting.
  const sentinelOptions = { ...options, socket: { ...socket, ...dialing('other', SENTINEL_TIMEOUT_MS) } }
  const reply: unknown = await withConnection(
    sentinelOptions as RedisClientOptions,
    SENTINEL_TIMEOUT_MS,
    (connection) => connection.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]),
  )
  const [host, port] = reply as [unknown, unknown]
  return { host: String(host), port: Number(port) }
}

/**
 * Asks for the replicas behind an address of a Cluster, or of Sentinels: any of them may be promoted. None where nobody tells.
 * Never rejects.
 */
export async function replicasOf(address: RedisAddress, access: RedisAccess): Promise<readonly RedisNode[]> {
  if (address.is === 'single') return []
  const ask = async (node: RedisNode): Promise<readonly RedisNode[]> => {
    const server = address.is === 'cluster' ? node : await askSentinel(node, access, address.master)
    if (server === undefined) throw new Error('the Sentinel names no master')
    return withConnection(nodeOptions(server, access), SENTINEL_TIMEOUT_MS, async (connection) => {
      if (address.is === 'cluster') {
        const { masters, replicas } = await readSlots(connection, node)
        if (masters.length === 0) throw new Error('the node knows of no slots')
        return replicas
      }
      const [, , replicas] = await connection.role()
      return (replicas as [string, string][]).map(([host, port]) => ({ host, port: Number(port) }))
    })
  }
  return Promise.any(address.nodes.map(ask)).catch(() => [])
}
