import type { Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { testCluster, testMasters, testSentinel } from '../support/redis/topologies.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { testRedis, type TestServer } from '../support/server/test-server.ts'

/** An instance: this process, or one of its own. */
export type Instance = Omit<TestServer, 'app'>

/** A Redis as operators run it, and two ways to it. */
export interface House {
  /** Between the instance that suffers and all servers. */
  readonly proxy: CommandProxy
  /** REDIS_URL of the instance that suffers, and that of others. */
  readonly urls: readonly [faulty: string, direct: string]
  /** Those that take writes. */
  readonly masters: readonly RedisProcess[]
  /** Whether the instance that suffers is a process with two workers. */
  readonly hasWorkers?: boolean
  readonly settings?: Readonly<Record<string, string>>
}

/** Starts a house that ends with the test. */
export type StartHouse = (t: Test) => Promise<House>

/** One Redis. */
export const single: StartHouse = async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  return { proxy, urls: [proxy.url, redis.url], masters: [redis] }
}

/** The same, for a process with two workers. */
export const twoWorkers: StartHouse = async (t) => ({ ...(await single(t)), hasWorkers: true })

/** The same behind TLS. */
export const withTls: StartHouse = async (t) => {
  const [redis, ca] = [await testRedis(t), await testCa(t)]
  await trust(t, ca)
  const proxy = await CommandProxy.start(t, redis, ca.pemFile)
  return { proxy, urls: [proxy.url, redis.url], masters: [redis] }
}

/** A Cluster of three masters. */
export const cluster: StartHouse = async (t) => {
  const masters = await testMasters(t, 3)
  const proxy = await CommandProxy.start(t, masters)
  const urls = [proxy.url, masters[0]?.url ?? ''].map((url) => url.replace('redis://', 'redis+cluster://'))
  return { proxy, urls: urls as [string, string], masters, settings: { IDEMPOTENCY_REPLICAS: '0' } }
}

/** A Cluster of three masters with a replica each. */
export const clusterWithReplicas: StartHouse = async (t) => {
  const cluster = await testCluster(t)
  const masters = await cluster.masters()
  const proxy = await CommandProxy.start(t, [...new Set([...masters, ...cluster.nodes])])
  const [faulty, direct] = [proxy.url, masters[0]?.url ?? ''].map((url) => url.replace('redis://', 'redis+cluster://'))
  return { proxy, urls: [faulty ?? '', direct ?? ''], masters }
}

/** A master with two replicas behind Sentinels, which never take it for dead. */
export const sentinel: StartHouse = async (t) => {
  const { nodes, sentinels, url } = await testSentinel(t, undefined, 60_000)
  const proxy = await CommandProxy.start(t, [...sentinels, ...nodes])
  const faulty = `${proxy.url.replace('redis://', 'redis+sentinel://')}/bff`
  return { proxy, urls: [faulty, url], masters: nodes.slice(0, 1) }
}

/** Starts a process with two workers, which ends with the test. */
export async function workers(t: Test, settings: Record<string, string>): Promise<Instance> {
  const process = await serverProcess(t, { ...settings, WORKERS: '2' })
  if (!(await ready(process))) throw new Error(process.output().stderr)
  const { port, opsPort } = process
  return {
    url: `http://localhost:${port}`,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    port,
    get log() {
      const lines = process.output().stdout.split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as TestServer['log'][number])
    },
    close: async () => void process.child.kill(),
  }
}
