import type { Config } from '../config/config.ts'
import { CONNECTIONS } from './connections.ts'
import { RestClient } from './rest-client.ts'

/** Shorter than any usual keep-alive timeout of a server. */
const ORDER_IDLE_MS = 900

/** The clients of the upstream REST API, each with connections of its own, so that none keeps another waiting. */
export interface RestClients {
  readonly reads: RestClient
  /** For calls that may move money: they never use a connection that upstream, or a proxy before it, is about to close. */
  readonly orders: RestClient
  /** A slow REST API must not keep anybody from the market. */
  readonly oneTimeUrls: RestClient
  /** Closes all of them; see {@link RestClient.close}. */
  close(): Promise<void>
}

/** Makes the clients. Nothing is connected until it is needed. */
export function createRestClients(config: Config['upstream']): RestClients {
  const reads = new RestClient(config, { connections: CONNECTIONS.reads })
  const orders = new RestClient(config, { connections: CONNECTIONS.orders, idleMs: ORDER_IDLE_MS })
  const oneTimeUrls = new RestClient(config, { connections: CONNECTIONS.oneTimeUrls })
  return {
    reads,
    orders,
    oneTimeUrls,
    async close() {
      await Promise.all([reads, orders, oneTimeUrls].map((client) => client.close()))
    },
  }
}
