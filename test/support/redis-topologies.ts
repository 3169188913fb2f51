import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import type { Test } from 'tap'
import { startRedis, type RedisProcess } from '../../sandbox/redis-process.ts'
import { freePort } from '../../sandbox/listening.ts'

/** How soon Sentinels and cluster nodes call a server dead: short, so that a test need not wait. */
const DOWN_MS = 1000
/** A master waits for more replicas before it feeds the first: 5 s unless it is told not to. */
const AT_ONCE = ['--repl-diskless-sync-delay', '0']

/** Several redis-servers that belong together. */
export interface Topology {
  /** What REDIS_URL says. */
  readonly url: string
  readonly nodes: readonly RedisProcess[]
  /** The servers that take writes at the moment. */
  readonly masters: () => Promise<RedisProcess[]>
}

/** Asks until it is so. */
export async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => void setTimeout(resolve, 20))
}

/** One answer of one server; undefined when it gives none. */
export async function askRedis(redis: RedisProcess, command: readonly string[]): Promise<unknown> {
  const socket = { socketTimeout: 500, connectTimeout: 500, reconnectStrategy: false as const }
  const client = createClient({ url: redis.url, socket })
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

/** A master with two replicas, and three Sentinels that watch it. */
export async function testSentinel(
  t: Test,
): Promise<Topology & { readonly sentinels: readonly RedisProcess[] }> {
  const master = await node(t, AT_ONCE)
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.port), ...AT_ONCE]
  const nodes = [master, await node(t, replicaOf), await node(t, replicaOf)]
  await until(async () => (await info(master)).includes('connected_slaves:2'))
  await until(async () => !(await info(master)).includes('state=wait_bgsave'))
  const dir = await mkdtemp(join(tmpdir(), 'bff-sentinel-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const sentinels: RedisProcess[] = []
  for (let count = 0; count < 3; count++) {
    const port = await freePort()
    const file = join(dir, `${port}.conf`)
    await writeFile(
      file,
      [
        `sentinel monitor bff 127.0.0.1 ${master.port} 2`,
        `sentinel down-after-milliseconds bff ${DOWN_MS}`,
        'sentinel failover-timeout bff 3000',
        '',
      ].join('\n'),
    )
    // The file comes first on the command line; what follows is added to it.
    sentinels.push(await node(t, ['--sentinel'], port, file))
  }
  for (const sentinel of sentinels) {
    await until(async () =>
      String(await askRedis(sentinel, ['SENTINEL', 'CKQUORUM', 'bff'])).startsWith('OK 3'),
    )
    await until(
      async () => ((await askRedis(sentinel, ['SENTINEL', 'REPLICAS', 'bff'])) as unknown[]).length === 2,
    )
  }
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://${hosts}/bff`, nodes, sentinels, masters: () => mastersOf(nodes) }
}

/** Three masters with a replica each. */
export async function testCluster(t: Test): Promise<Topology> {
  const nodes: RedisProcess[] = []
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(DOWN_MS), ...AT_ONCE]
  for (let count = 0; count < 6; count++) {
    nodes.push(await node(t, options, await clusterPort()))
  }
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`)
  execFileSync('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-replicas', '1', '--cluster-yes'])
  for (const each of nodes) {
    await until(async () => String(await askRedis(each, ['CLUSTER', 'INFO'])).includes('cluster_state:ok'))
    await until(async () => /connected_slaves:1|master_link_status:up/.test(await info(each)))
  }
  return { url: hosts.map((host) => `redis://${host}`).join(','), nodes, masters: () => mastersOf(nodes) }
}

/** The nodes talk to each other on the port 10000 above. */
async function clusterPort(): Promise<number> {
  let port = await freePort()
  while (port > 55_000) port = await freePort()
  return port
}

async function node(
  t: Test,
  options: readonly string[],
  port?: number,
  file?: string,
): Promise<RedisProcess> {
  const redis = await startRedis(options, port, file)
  t.teardown(() => redis.close())
  return redis
}

async function mastersOf(nodes: readonly RedisProcess[]): Promise<RedisProcess[]> {
  const roles = await Promise.all(nodes.map((each) => askRedis(each, ['ROLE'])))
  return nodes.filter((_node, index) => (roles[index] as unknown[] | undefined)?.[0] === 'master')
}

async function info(redis: RedisProcess): Promise<string> {
  return String(await askRedis(redis, ['INFO', 'replication']))
}
