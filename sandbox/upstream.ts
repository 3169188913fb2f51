import { createServer } from 'node:http'
import { closeNow, listen } from './listening.ts'
import type { SandboxProvider } from './provider.ts'
import { ContractBook } from './upstream/contract-book.ts'
import { Market } from './upstream/market.ts'
import { OneTimePasswords } from './upstream/one-time-passwords.ts'
import { buildRest, type SeenRequest } from './upstream/rest.ts'
import { Sockets } from './upstream/sockets.ts'
import { Users } from './upstream/users.ts'
import type { World } from './upstream/world.ts'

/** A running trading service (docs/upstream.md, The trading service), small and invented: accounts, contracts and prices live in memory. */
export interface SandboxUpstream {
  /** `http://host:port`, without a trailing slash. */
  url: string
  /** The same address for WebSockets. */
  wsUrl: string
  /** Every one-time password, and every complete URL with one, ever given out. */
  issued: Set<string>
  /** The REST requests that arrived, newest last; of very many, the last ten thousand. */
  requests: readonly SeenRequest[]
  /** How many WebSockets of each kind are open. */
  sockets(): { public: number; demo: number; real: number }
  /** Stops at once, open connections included. */
  close(): Promise<void>
}

export interface UpstreamOptions {
  /** 0, the default, takes any free port. */
  port?: number
  /** The host of its own address. */
  host?: string
  /** The address it listens on, where that is another one; in a container, for instance. */
  bind?: string
  /** Who says which access tokens are good. */
  provider: Pick<SandboxProvider, 'isActive'>
  /** Prices walk the same way for the same seed. */
  seed?: number
  /** Time between two ticks of a symbol. */
  tickMs?: number
}

/**
 * Starts the trading service.
 * @throws the listening error as it came, EADDRINUSE for a taken port
 */
export async function startUpstream(options: UpstreamOptions): Promise<SandboxUpstream> {
  const { port = 0, host = '127.0.0.1', provider, seed = 1, tickMs = 1000 } = options
  const server = createServer()
  const address = `${host}:${await listen(server, port, options.bind ?? host)}`
  const wsUrl = `ws://${address}`
  const world: World = {
    provider,
    market: new Market({ seed, tickMs }),
    users: new Users(),
    contracts: new ContractBook(tickMs),
    oneTimePasswords: new OneTimePasswords(wsUrl),
  }
  const requests: SeenRequest[] = []
  const app = await buildRest(world, requests)
  const sockets = new Sockets(world)
  server.on('request', (request, response) => app.routing(request, response))
  sockets.attach(server)
  return {
    url: `http://${address}`,
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
