import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { freePort } from '../../sandbox/listening.ts'
import type { ProviderOptions, SandboxProvider } from '../../sandbox/provider.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import type { UpstreamOptions } from '../../sandbox/upstream.ts'
import type { Store } from '../../src/store/store.ts'
import type { BrowserSocket } from './browser/browser-socket.ts'
import { JarBrowser, type Arrival } from './browser/jar-browser.ts'
import { sandboxProvider, upstreamPart, type ProviderPart, type StartProvider, type Upstreams } from './parts.ts'
import { storeClient } from './redis/store-client.ts'
import { CLIENT_ID, SECRETS, testRedis, testServer, type TestServer } from './server/test-server.ts'
import { samplesOf } from './telemetry/metrics.ts'
import { nextEvent, until, within } from './time/until.ts'
import { ScriptedUpstream } from './upstream/scripted-upstream.ts'
import { sendTo, userOf, type Answer, type CallInit, type SocketOptions, type User } from './user.ts'

/** What a test wants in its world. */
interface Wanted<Provider, Name extends keyof Upstreams> {
  /** By default the sandbox's, which may get options. */
  readonly provider?: StartProvider<Provider> | Partial<ProviderOptions>
  /** By default the sandbox's with the provider of the sandbox, and none with another one. */
  readonly upstream?: Name
  /** Options of the sandbox's upstream. */
  readonly market?: Partial<UpstreamOptions>
  /** Sessions in a real Redis instead of in memory; a list has options of redis-server. */
  readonly redis?: boolean | readonly string[]
  /** How many instances share it: one by default. */
  readonly instances?: number
  readonly settings?: Readonly<Record<string, string>>
  /** Keeps the sessions in place of Redis or of a memory store of the server's own. */
  readonly store?: Store
  /** The port of the first instance, if a test must know it before. */
  readonly port?: number
  /** Logs the first user in by this name. Without it they are only a visitor. */
  readonly user?: string
}

/** Real parts that end with the test, and the first user, whose acts are those of the world. */
export interface World<Name extends keyof Upstreams = 'sandbox', Provider = SandboxProvider>
  extends User, Omit<Parts<Name, Provider>, 'logIn'> {
  /** The first instance, at the public address. */
  readonly server: TestServer
  readonly servers: readonly TestServer[]
  /** Starts one more instance, with settings that differ. */
  readonly instance: (settings?: Readonly<Record<string, string>>) => Promise<TestServer>
  /** Logs a user of this name in, with a browser of their own. */
  readonly user: (name?: string, at?: TestServer) => Promise<User & { readonly arrival: Arrival }>
  /** Somebody with a browser, by default a new one. */
  readonly visitor: (browser?: JarBrowser, at?: Pick<TestServer, 'url' | 'port'>) => User
  /** A call without a session. */
  readonly send: (method: string, path: string, init?: CallInit) => Promise<Answer>
  /** Writes bytes on a new connection, and reads until the server closes it or has been silent for a second. */
  readonly raw: (bytes: string) => Promise<string>
  /** A new connection to the server. */
  readonly connection: () => Promise<Socket>
  /** An open socket of the first user, and the socket of a scripted upstream that it leads to. */
  readonly joined: (path: string, options?: SocketOptions) => Promise<{ client: BrowserSocket; peer: WebSocket }>
  /** A client of the test for the Redis of the world. */
  readonly storeClient: () => ReturnType<typeof storeClient>
  /** The values of a metric by its labels, e.g. `kind="demo"`; '' for one without. */
  readonly metric: (name: string) => Promise<Map<string, number>>
  /** Resolves once no browser has a socket. */
  readonly quiet: () => Promise<void>
}

/** A user whose calls reach an upstream of raw TCP. */
export const API = { upstream: 'raw', user: 'demo' } as const
/** A user whose sockets reach a scripted upstream. */
export const RELAY = { upstream: 'scripted', user: 'demo' } as const

const HALF_A_SILENCE_MS = 500

/** The parts of a world around its servers. */
interface Parts<Name extends keyof Upstreams, Provider> {
  readonly provider: Provider
  readonly upstream: Upstreams[Name]
  readonly redis: RedisProcess | undefined
  /** The address of all instances, and the port where the first one must listen. */
  readonly publicUrl: string
  readonly port: number
  /** The settings that all instances have. */
  readonly settings: Readonly<Record<string, string>>
  readonly logIn: ProviderPart<Provider>['logIn']
}

/** Starts what a test wants around servers that it starts itself, such as processes. */
export async function startParts<
  Provider = SandboxProvider,
  Name extends keyof Upstreams = Provider extends SandboxProvider ? 'sandbox' : 'none',
>(t: Test, wanted: Wanted<Provider, Name> = {}): Promise<Parts<Name, Provider>> {
  const { provider: own, redis: wantsRedis = false, port = await freePort(), settings: more } = wanted
  const publicUrl = more?.['PUBLIC_URL'] ?? `http://localhost:${port}`
  const startProvider = typeof own === 'function' ? own : sandboxProvider(own)
  const { users, ...part } = (await startProvider(t, publicUrl)) as ProviderPart<Provider>
  const name = wanted.upstream ?? (typeof own === 'function' ? 'none' : 'sandbox')
  const { upstream, settings: addresses } = await upstreamPart(t, name, users, wanted.market)
  const redis = wantsRedis === false ? undefined : await testRedis(t, wantsRedis === true ? [] : wantsRedis)
  const settings = {
    PUBLIC_URL: publicUrl,
    CLIENT_ID,
    ...(more?.['SESSION_SECRETS_FILE'] === undefined && { SESSION_SECRETS: SECRETS }),
    ...part.settings,
    ...addresses,
    ...(redis && { REDIS_URL: redis.url }),
    ...more,
  }
  return { ...part, upstream: upstream as Upstreams[Name], redis, publicUrl, port, settings }
}

/** Starts the parts that a test wants, and the servers between them. */
export async function startWorld<
  Provider = SandboxProvider,
  Name extends keyof Upstreams = Provider extends SandboxProvider ? 'sandbox' : 'none',
>(t: Test, wanted: Wanted<Provider, Name> = {}): Promise<World<Name, Provider>> {
  const { logIn, ...parts } = await startParts(t, wanted)
  const { settings, upstream } = parts
  const instance: World['instance'] = (more) => testServer(t, { ...settings, ...more }, wanted.store)
  const server = await instance({ PORT: String(parts.port) })
  const others = await Promise.all(Array.from({ length: (wanted.instances ?? 1) - 1 }, () => instance()))
  const visitor: World['visitor'] = (browser = new JarBrowser(), { url, port } = server) =>
    userOf(t, browser, { url, port, logIn })
  const first = visitor()
  if (wanted.user !== undefined) await first.logIn(wanted.user)
  const metric: World['metric'] = (name) => samplesOf(server.opsUrl, name)
  return {
    ...parts,
    ...first,
    get cookie() {
      return first.cookie
    },
    ...wires(t, server.port),
    server,
    servers: [server, ...others],
    instance,
    visitor,
    async user(name, at) {
      const next = visitor(undefined, at)
      return Object.assign(next, { arrival: await next.logIn(name) })
    },
    async joined(path, options) {
      if (!(upstream instanceof ScriptedUpstream)) throw new Error('this upstream has no sockets')
      const client = await first.socket(path, options).opened()
      return { client, peer: await upstream.socket() }
    },
    storeClient: () => storeClient(t, parts),
    metric,
    async quiet() {
      if (upstream instanceof ScriptedUpstream) await until(() => upstream.open === 0)
      await until(async () => [...(await metric('bff_relays')).values()].every((count) => count === 0))
    },
  }
}

/** Ways to the server below HTTP, and without a session. */
function wires(t: Test, port: number): Pick<World, 'send' | 'raw' | 'connection'> {
  const connection = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    await nextEvent(socket, 'connect')
    return socket
  }
  return {
    send: (method, path, { at, ...init } = {}) => sendTo(at?.port ?? port, method, path, init),
    connection,
    async raw(bytes) {
      const socket = await connection()
      socket.write(bytes, 'latin1')
      // In halves, because what has arrived while this process stood still is read after its timers have run.
      let isHalf = false
      socket.on('data', () => (isHalf = false))
      socket.on('timeout', () => {
        if (isHalf) return void socket.destroy()
        isHalf = true
        socket.setTimeout(HALF_A_SILENCE_MS)
      })
      socket.setTimeout(HALF_A_SILENCE_MS)
      return readAll(socket)
    },
  }
}

/** Every byte until the connection is closed, or reset, as it is where what was sent has not been read. */
export async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  if (!socket.destroyed)
    await within(new Promise((closed) => void socket.once('close', closed)), 'the connection is closed')
  return text
}
