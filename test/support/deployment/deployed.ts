import './over-http1.ts'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import { deployedBalancer, PUBLIC_URL } from './deployed-balancer.ts'
import { answerJson, ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { startNameServer } from './name-server.ts'
import type { ProxyProcess } from '../proxies/process.ts'
import { ready, serverProcess, type ProcessOptions, type ServerProcess } from '../server/server-process.ts'
import { untilSlow } from '../time/until.ts'
import { startParts } from '../world.ts'

/** Instances on one Redis, without a balancer. */
export interface Fleet {
  readonly upstream: ScriptedUpstream
  /** Ids of the calls that upstream has executed. */
  readonly executed: readonly string[]
  readonly redis: RedisProcess
  /** Starts an instance at an address of its own, on the ports that all instances have. */
  readonly launch: (host: string, settings?: Record<string, string>, options?: ProcessOptions) => Promise<ServerProcess>
}

/** Starts everything that instances with these settings need, inside enterNamespaces(). It ends with the test. */
export async function startFleet(t: Test, publicUrl: string, common: Record<string, string> = {}): Promise<Fleet> {
  const own = { PUBLIC_URL: publicUrl, TRUST_PROXY: '1', ...common }
  const parts = await startParts(t, { upstream: 'scripted', redis: true, settings: own })
  const { upstream, redis } = parts
  const ports = { PORT: '3000', OPS_PORT: '9464' }
  return {
    upstream,
    executed: executedBy(upstream),
    redis: redis as RedisProcess,
    launch: (host, settings, options) =>
      serverProcess(t, { ...parts.settings, ...ports, HOST: host, ...settings }, options),
  }
}

/** Instances behind the deployed balancer, which finds them by name. */
export interface Deployment extends Omit<Fleet, 'launch'> {
  readonly balancer: ProxyProcess
  /** The first instances. */
  readonly instances: readonly ServerProcess[]
  /**
   * Starts one more instance, at a new address. As with containers, its name resolves while its process runs.
   */
  readonly start: (settings?: Record<string, string>, options?: ProcessOptions) => Promise<ServerProcess>
}

/** Starts a deployment with an instance for each of these settings, inside enterNamespaces(). It ends with the test. */
export async function deployment(
  t: Test,
  common: Record<string, string>,
  each: readonly Record<string, string>[],
  editBalancer?: (text: string) => string,
  options?: ProcessOptions,
): Promise<Deployment> {
  const { launch, ...fleet } = await startFleet(t, PUBLIC_URL, common)
  const addresses = new Set<string>()
  await startNameServer(t, 'app', addresses)
  const balancer = await deployedBalancer(t, editBalancer)
  let last = 0
  const start: Deployment['start'] = async (settings, options) => {
    const host = `127.0.1.${++last}`
    const instance = await launch(host, settings, options)
    addresses.add(host)
    instance.child.once('close', () => addresses.delete(host))
    t.ok(await ready(instance), 'an instance has started')
    return instance
  }
  const instances = await Promise.all(each.map((settings) => start(settings, options)))
  await untilSlow(async () => (await fetch(`${PUBLIC_URL}/auth/session`)).ok)
  return { ...fleet, balancer, start, instances }
}

/** Makes upstream slow, and send prices for ever. @returns the calls that it executes */
function executedBy(upstream: ScriptedUpstream): readonly string[] {
  const executed: string[] = []
  upstream.onRest = (request, response) => {
    void text(request).then((body) => {
      executed.push(body === '' ? (request.url ?? '').replace(/.*\?/, '') : body)
      setTimeout(() => answerJson(response, 200, { data: [] }), (executed.length * 37) % 150)
    })
  }
  upstream.onSocket = (socket) => {
    const ticks = setInterval(() => socket.send('{"tick":1}'), 100)
    socket.on('close', () => clearInterval(ticks))
  }
  return executed
}

/** Whether calls have reached this instance. */
export async function hasServed({ host, opsPort }: ServerProcess): Promise<boolean> {
  const metrics = await (await fetch(`http://${host}:${opsPort}/metrics`)).text()
  return /bff_http_request_duration_seconds_count\{[^}]*route="\/api\/[^}]*\} [1-9]/.test(metrics)
}
