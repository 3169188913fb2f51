import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Certificate } from './certificate.ts'
import { closeNow, listen } from './listening.ts'
import type { SandboxProvider } from './provider.ts'
import type { Sharing } from './sharing.ts'
import { ContractBook } from './upstream/contract-book.ts'
import { BIG_IDS, PLAIN_IDS } from './upstream/contract-ids.ts'
import { GENEROUS_LIMITS, type SocketLimits } from './upstream/limits.ts'
import { Market, type Tick } from './upstream/market.ts'
import { OneTimePasswords } from './upstream/one-time-passwords.ts'
import { buildRest, type SeenRequest } from './upstream/rest.ts'
import { Sockets } from './upstream/sockets.ts'
import { Users } from './upstream/users.ts'
import type { UpstreamWatch } from './upstream/watch.ts'
import type { World } from './upstream/world.ts'

/** A running trading service (docs/upstream.md, The trading service) with invented data in memory. */
export interface SandboxUpstream {
  /** `http://host:port`, or `https`, without a trailing slash. */
  url: string
  /** `ws://host:port`, or `wss`, without a trailing slash. */
  wsUrl: string
  /** All issued one-time passwords and all issued URLs with them. */
  issued: Set<string>
  /** The REST requests that have arrived, newest last; at least the last ten thousand. */
  requests: readonly SeenRequest[]
  /** The number of open WebSockets by kind. */
  sockets(): { public: number; demo: number; real: number }
  /** Stops the service and closes open connections. */
  close(): Promise<void>
}

export interface UpstreamOptions {
  /** Any free port by default. */
  port?: number
  /** The host in its URLs; 127.0.0.1 by default. */
  host?: string
  /** The address to listen on, if it differs from the host, for example in a container. */
  bind?: string
  /** Its certificate, if it speaks TLS. */
  tls?: Certificate | undefined
  /** The provider that validates access tokens. */
  provider: Pick<SandboxProvider, 'isActive'>
  /** The seed of the random walk of prices. */
  seed?: number
  /** The interval between two ticks of a symbol. */
  tickMs?: number
  /** The limits of one WebSocket; by default ten times the usual ones. */
  limits?: SocketLimits
  /** Reads what browsers share, for the demo page. */
  sharing?: () => Promise<Sharing>
  /** Is told what the service does. */
  watch?: UpstreamWatch
  /** If true, one-time URLs have the host that a client has called, as behind a proxy. */
  followsHost?: boolean
  /** If true, the ids of contracts are beyond 2^53. */
  hasBigIds?: boolean
}

/** A watch is told of so many ticks from before the start. */
const TOLD_TICKS = 100

/** Starts the trading service. @throws the error of the server, such as EADDRINUSE */
export async function startUpstream(options: UpstreamOptions): Promise<SandboxUpstream> {
  const { port = 0, host = '127.0.0.1', tls, provider, seed = 1, tickMs = 1000, limits = GENEROUS_LIMITS } = options
  const server = tls === undefined ? createServer() : createTlsServer(tls)
  const address = `${host}:${await listen(server, port, options.bind ?? host)}`
  const [scheme, wsScheme] = tls === undefined ? ['http', 'ws'] : ['https', 'wss']
  const wsUrl = `${wsScheme}://${address}`
  const world: World = {
    provider,
    market: new Market({ seed, tickMs }),
    users: new Users(),
    contracts: new ContractBook(tickMs),
    ids: options.hasBigIds === true ? BIG_IDS : PLAIN_IDS,
    oneTimePasswords: new OneTimePasswords(wsUrl),
    limits,
    sharing: options.sharing,
    watch: options.watch,
    followsHost: options.followsHost ?? false,
  }
  if (options.watch) watchTicks(world.market, options.watch)
  const requests: SeenRequest[] = []
  const app = await buildRest(world, requests)
  const sockets = new Sockets(world)
  server.on('request', (request, response) => app.routing(request, response))
  sockets.attach(server)
  return {
    url: `${scheme}://${address}`,
    wsUrl,
    issued: world.oneTimePasswords.issued,
    requests,
    sockets: () => sockets.count(),
    async close() {
      world.market.close()
      sockets.close()
      await closeNow(server)
      await app.close()
    },
  }
}

/** Tells of all ticks, and first of some from before the start, which a history may contain. */
function watchTicks(market: Market, watch: UpstreamWatch): void {
  for (const { info, history, ticks } of market.instruments()) {
    const tell = (tick: Tick): void => watch.tick({ symbol: info.code, ...tick })
    for (const tick of history.slice(-TOLD_TICKS)) tell(tick)
    ticks.add(tell)
  }
}
