import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import type { ProviderOptions, SandboxProvider } from '../../../sandbox/provider.ts'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import type { Store } from '../../../src/store/store.ts'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { samplesOf } from '../telemetry/metrics.ts'
import { freePort } from '../../../sandbox/listening.ts'
import { logIn, testProvider, testRedis, testServer, type TestServer } from '../server/world.ts'
import { until } from '../time/until.ts'

/** How a page opens a socket. */
interface SocketOptions {
  /** null: no Origin is sent. */
  readonly origin?: string | null
  readonly headers?: Record<string, string>
  readonly browser?: JarBrowser
  /** Another instance, as behind a balancer. */
  readonly port?: number
}

/** A server between a scripted upstream and a browser. */
export interface RelayWorld {
  readonly provider: SandboxProvider
  readonly upstream: ScriptedUpstream
  readonly server: TestServer
  readonly redis: RedisProcess | undefined
  readonly settings: Record<string, string>
  readonly browser: JarBrowser
  /** Opens a socket as a page of the frontend would. */
  connect(path: string, options?: SocketOptions): BrowserSocket
  /** The values of a metric by its labels, e.g. `kind="demo"`; '' for one without. */
  metric(name: string): Promise<Map<string, number>>
  /** Resolves once neither the server nor upstream has a relay. */
  quiet(): Promise<void>
}

export const PUBLIC = '/ws/public'
export const TRADING = '/ws/trading/VRTC100'

/** Logs out as a page does. */
export function logOut(browser: JarBrowser): Promise<Response> {
  return browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
}

/** Starts a world that ends with the test. Its browser is logged in unless `anonymous` is set. */
export async function relayWorld(
  t: Test,
  options: {
    settings?: Record<string, string>
    provider?: Partial<ProviderOptions>
    redis?: boolean
    /** Keeps the sessions in place of Redis or a memory store of the server's own. */
    store?: Store
    anonymous?: boolean
    /** The port of the server, if a test must know it before. */
    port?: number
  } = {},
): Promise<RelayWorld> {
  const port = options.port ?? (await freePort())
  const publicUrl = `http://localhost:${port}`
  const provider = await testProvider(t, publicUrl, options.provider)
  const upstream = await ScriptedUpstream.start(t)
  const redis = options.redis === true ? await testRedis(t) : undefined
  const settings = {
    PUBLIC_URL: publicUrl,
    AUTH_URL: provider.url,
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    ...(redis && { REDIS_URL: redis.url }),
    ...options.settings,
  }
  const server = await testServer(t, { ...settings, PORT: String(port) }, options.store)
  const browser = new JarBrowser()
  if (options.anonymous !== true) await logIn(browser, publicUrl)
  const metric = (name: string): Promise<Map<string, number>> => samplesOf(server.opsUrl, name)
  const connect: RelayWorld['connect'] = (path, options = {}) => {
    const { origin = publicUrl, headers = {}, browser: other = browser, port: there = port } = options
    const cookie = other.cookieHeader(new URL(publicUrl), undefined)
    const client = new BrowserSocket(`ws://127.0.0.1:${there}${path}`, {
      ...(origin !== null && { origin }),
      ...(cookie !== '' && { cookie }),
      ...headers,
    })
    t.teardown(() => client.socket.terminate())
    return client
  }
  return {
    provider,
    upstream,
    server,
    redis,
    settings,
    browser,
    metric,
    connect,
    async quiet() {
      await until(() => upstream.open === 0)
      await until(async () => [...(await metric('bff_relays')).values()].every((count) => count === 0))
    },
  }
}

/** An open relay: the browser's socket, and upstream's socket that it leads to. */
export async function joined(
  world: RelayWorld,
  path: string,
  options: SocketOptions = {},
): Promise<{ client: BrowserSocket; peer: WebSocket }> {
  const client = await world.connect(path, options).opened()
  return { client, peer: await world.upstream.socket() }
}
