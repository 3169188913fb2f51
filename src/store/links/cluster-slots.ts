import type { RedisNode } from '../../config/redis-address.ts'
import type { Connection } from './connection.ts'

/** How many parts the keys of a Cluster are divided into. */
export const SLOTS = 16_384

/** Advice for an operator whose REDIS_URL names one node of a Cluster of several masters as if it were alone. */
export const MEMBER_ADVICE = 'Name the Cluster: redis+cluster://host:port (rediss+cluster:// for TLS).'

/** CRC16 (XMODEM) of the key, or of what is in its first braces (redis.io/docs/reference/cluster-spec: hash tags). */
export function slotOf(key: string): number {
  const [, tag = key] = /^[^{]*\{([^}]+)\}/.exec(key) ?? []
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc % SLOTS
}

/** The owners of the slots, as a node of a Cluster names them. */
export interface Slots {
  /** Each once. */
  readonly masters: readonly RedisNode[]
  /** Each once. */
  readonly replicas: readonly RedisNode[]
  /** The one of {@link masters} that owns each slot. Undefined where none does. */
  readonly owners: readonly (RedisNode | undefined)[]
}

/** Asks a node who owns which slots. @param asked its address, which nodes without a host of their own share */
export async function readSlots(connection: Pick<Connection, 'sendCommand'>, asked: RedisNode): Promise<Slots> {
  const ranges = await connection.sendCommand<[first: number, last: number, ...NodeReply[]][]>(['CLUSTER', 'SLOTS'])
  const masters = new Map<string, RedisNode>()
  const others = new Map<string, RedisNode>()
  const owners = Array.from<RedisNode | undefined>({ length: SLOTS })
  for (const [first, last, ...replies] of ranges) {
    const [named, ...replicas] = replies.map((reply) => nodeOf(reply, asked))
    if (named === undefined) throw new Error('a range of slots has no master')
    const master = masters.get(addressOf(named)) ?? named
    masters.set(addressOf(master), master)
    for (const replica of replicas) others.set(addressOf(replica), replica)
    owners.fill(master, first, last + 1)
  }
  return { masters: [...masters.values()], replicas: [...others.values()], owners }
}

type NodeReply = readonly [host: string | null, port: number, ...unknown[]]

function nodeOf([host, port]: NodeReply, asked: RedisNode): RedisNode {
  return { host: isHost(host) ? host : asked.host, port }
}

/** A node that does not know its name, or is told to keep it, leaves it out (cluster-preferred-endpoint-type). */
function isHost(host: string | null): host is string {
  return host !== null && host !== '' && host !== '?'
}

/** Where a server sends a client that asked it for the key of another (`MOVED 3999 127.0.0.1:6381`, `ASK …`). */
export function targetOf(redirection: string, asked: RedisNode): RedisNode {
  const address = redirection.slice(redirection.lastIndexOf(' ') + 1)
  const colon = address.lastIndexOf(':')
  return nodeOf([address.slice(0, colon), Number(address.slice(colon + 1))], asked)
}

export function addressOf({ host, port }: RedisNode): string {
  return `${host}:${port}`
}

/**
 * How many masters the Cluster has that a server is a node of. One that is reached as if it were alone refuses the keys of all
 * others. 1 where the server is no such node.
 * @throws Error where the server does not say, or is lost
 */
export async function clusterSize(connection: Pick<Connection, 'info' | 'sendCommand'>): Promise<number> {
  const { cluster_enabled: isNode } = await connection.info('cluster')
  return isNode === '1' ? (await readSlots(connection, { host: '', port: 0 })).masters.length : 1
}
