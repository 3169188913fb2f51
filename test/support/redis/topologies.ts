import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startRedis, type RedisProcess } from '../../../sandbox/redis-process.ts'
import { freePort } from '../../../sandbox/listening.ts'
import { createClient } from './client.ts'
import type { TestCa } from './tls.ts'
import { untilSlow } from '../time/until.ts'

/** The time after which Sentinels and cluster nodes consider a server dead, short for the tests. */
const DOWN_MS = 1000
/** By default a master waits 5 s for more replicas before it synchronises the first. */
const AT_ONCE = ['--repl-diskless-sync-delay', '0']

/** The password of a topology that needs one. */
const PASSWORD = 'a:secret'
const URL_PASSWORD = encodeURIComponent(PASSWORD)

/** Several redis-servers that belong together. */
export interface Topology {
  /** The value of REDIS_URL. */
  readonly url: string
  readonly nodes: readonly RedisProcess[]
  /** The servers that take writes now. */
  readonly masters: () => Promise<RedisProcess[]>
}

/** How long a server may take to reply. On a busy machine half a second was not enough. */
const PATIENCE_MS = 2000

/** The reply of one server; undefined without one. */
export async function askRedis(redis: Pick<RedisProcess, 'url'>, command: readonly string[]): Promise<unknown> {
  const socket = { socketTimeout: PATIENCE_MS, connectTimeout: PATIENCE_MS, reconnectStrategy: false as const }
  const client = createClient({ url: redis.url, socket, disableClientInfo: true })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await client.sendCommand([...command])
  } catch {
    return undefined
  } finally {
    if (client.isOpen) client.destroy()
  }
}

/**
 * A master with two replicas, and three Sentinels that watch it.
 * @param ca makes all of them speak TLS, and the servers (not the Sentinels) demand a password
 * @param downMs after how long without a reply a server is considered dead
 */
export async function testSentinel(
  t: Test,
  ca?: TestCa,
  downMs = DOWN_MS,
): Promise<Topology & { readonly sentinels: readonly RedisProcess[] }> {
  const master = await node(t, AT_ONCE, { ca })
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.peerPort), ...AT_ONCE]
  const nodes = [master, await node(t, replicaOf, { ca }), await node(t, replicaOf, { ca })]
  await untilSlow(async () => (await replicationOf(master)).split('state=online').length === 3)
  const sentinels = await startSentinels(t, master.peerPort, { replicas: 2, downMs, failoverMs: 3000, ca })
  const hosts = sentinels.map(({ peerPort }) => `127.0.0.1:${peerPort}`).join(',')
  const url = ca === undefined ? `redis+sentinel://${hosts}/bff` : `rediss+sentinel://:${URL_PASSWORD}@${hosts}/bff`
  return { url, nodes, sentinels, masters: () => mastersOf(nodes) }
}

/** Starts three Sentinels that watch the master at a port as `bff`, and waits until all know of each other and its replicas. */
export async function startSentinels(
  t: Test,
  masterPort: number,
  {
    replicas,
    downMs,
    failoverMs,
    ca,
  }: { replicas: number; downMs: number; failoverMs: number; ca?: TestCa | undefined },
): Promise<Node[]> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-sentinel-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const lines = [
    `sentinel monitor bff 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds bff ${downMs}`,
    `sentinel failover-timeout bff ${failoverMs}`,
    ...(ca === undefined ? [] : [`sentinel auth-pass bff ${PASSWORD}`]),
    '',
  ].join('\n')
  const sentinels: Node[] = []
  for (let count = 0; count < 3; count++) {
    const port = await freePort()
    const file = join(dir, `${port}.conf`)
    await writeFile(file, lines)
    // The file comes first on the command line. The other options are added to it.
    sentinels.push(await node(t, ['--sentinel'], { ca, port, file, isOpen: true }))
  }
  for (const sentinel of sentinels) {
    await untilSlow(async () => String(await askRedis(sentinel, ['SENTINEL', 'CKQUORUM', 'bff'])).startsWith('OK 3'))
    await untilSlow(async () => {
      const known = await askRedis(sentinel, ['SENTINEL', 'REPLICAS', 'bff'])
      return Array.isArray(known) && known.length === replicas
    })
  }
  return sentinels
}

/**
 * Three masters with a replica each.
 * @param ca makes all of them speak TLS and demand a password
 */
export async function testCluster(t: Test, ca?: TestCa): Promise<Topology> {
  const nodes: Node[] = []
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(DOWN_MS), ...AT_ONCE]
  const secure = ca === undefined ? [] : ['--tls-cluster', 'yes']
  for (let count = 0; count < 6; count++) {
    nodes.push(await node(t, [...options, ...secure], { ca, port: await clusterPort(), tlsPort: await clusterPort() }))
  }
  const hosts = nodes.map(({ peerPort }) => `127.0.0.1:${peerPort}`)
  const access = ca === undefined ? [] : ['--tls', '--cacert', ca.caFile, '-a', PASSWORD, '--no-auth-warning']
  joinCluster(hosts, access)
  await untilSlow(() => isWholeCluster(nodes), 'the cluster is whole')
  const scheme = ca === undefined ? 'redis://' : `rediss://:${URL_PASSWORD}@`
  return { url: hosts.map((host) => scheme + host).join(','), nodes, masters: () => mastersOf(nodes) }
}

/**
 * A Cluster of masters alone, which divide the slots equally. It is whole within a second or two.
 * @param options more options of each server
 */
export async function testMasters(
  t: Test,
  count: number,
  options: readonly string[] = [],
  host = '127.0.0.1',
): Promise<Node[]> {
  const nodes: Node[] = []
  for (let added = 0; added < count; added++) {
    const own = [
      '--cluster-enabled',
      'yes',
      '--bind',
      ...new Set(['127.0.0.1', host]),
      '--cluster-require-full-coverage',
      'no',
    ]
    nodes.push(await node(t, [...own, ...options], { port: await clusterPort() }))
  }
  const share = 16_384 / count
  for (const [at, each] of nodes.entries()) {
    const [first, last] = [Math.ceil(at * share), Math.ceil((at + 1) * share) - 1]
    await askRedis(each, ['CLUSTER', 'ADDSLOTSRANGE', String(first), String(last)])
    await askRedis(each, ['CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1)])
    await askRedis(each, ['CLUSTER', 'MEET', host, String(nodes[0]?.port)])
  }
  const isWhole = async (each: Node): Promise<boolean> => {
    const slots = await askRedis(each, ['CLUSTER', 'SLOTS'])
    const state = String(await askRedis(each, ['CLUSTER', 'INFO']))
    return Array.isArray(slots) && slots.length === count && state.includes('cluster_state:ok')
  }
  await untilSlow(async () => (await Promise.all(nodes.map(isWhole))).every(Boolean), 'the cluster is whole')
  return nodes
}

/** Makes a Cluster of servers: the first half are masters, the others their replicas. */
export function joinCluster(hosts: readonly string[], access: readonly string[] = []): void {
  const create = ['--cluster', 'create', ...hosts, '--cluster-replicas', '1', '--cluster-yes']
  execFileSync('redis-cli', [...access, ...create])
}

/** Whether all nodes serve. A replica that is still synchronising confirms nothing. */
export async function isWholeCluster(nodes: readonly Pick<RedisProcess, 'url'>[]): Promise<boolean> {
  const infos = await Promise.all(nodes.map(replicationOf))
  const states = await Promise.all(nodes.map((each) => askRedis(each, ['CLUSTER', 'INFO'])))
  return (
    states.every((state) => String(state).includes('cluster_state:ok')) &&
    infos.every((info) => /state=online|master_link_status:up/.test(info))
  )
}

/** Nodes use the port 10000 above theirs to talk to each other. */
export const clusterPort = (): Promise<number> => freePort(10_000)

/** A server, and the port that its peers use. */
type Node = RedisProcess & { readonly peerPort: number }

async function node(
  t: Test,
  options: readonly string[],
  more: {
    ca?: TestCa | undefined
    port?: number
    tlsPort?: number
    file?: string
    /** Whether it demands no password. */
    isOpen?: boolean
  },
): Promise<Node> {
  const { ca, tlsPort = await freePort(), isOpen = false } = more
  const secure = ca === undefined ? [] : [...ca.serverOptions(tlsPort), '--tls-replication', 'yes']
  const closed = ca === undefined || isOpen ? [] : ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
  const redis = await startRedis([...options, ...secure, ...closed], more.port, more.file)
  t.teardown(() => redis.close())
  const url = closed.length === 0 ? redis.url : redis.url.replace('://', `://:${URL_PASSWORD}@`)
  return { ...redis, url, peerPort: ca === undefined ? redis.port : tlsPort }
}

/** Those of the servers that reply and are masters. */
export async function mastersOf<Server extends Pick<RedisProcess, 'url'>>(nodes: readonly Server[]): Promise<Server[]> {
  const infos = await Promise.all(nodes.map(replicationOf))
  return nodes.filter((_node, index) => infos[index]?.includes('role:master') === true)
}

/** What a server says of its replication; no such text if it does not reply. */
export async function replicationOf(redis: Pick<RedisProcess, 'url'>): Promise<string> {
  return String(await askRedis(redis, ['INFO', 'replication']))
}
