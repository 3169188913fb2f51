import type { Config } from '../config/config.ts'
import type { Budget } from './budget/admission.ts'
import { RestClient } from './rest-client.ts'

/** Maximum connections to the upstream REST API, by purpose: one purpose cannot use up the connections of another. */
export const CONNECTIONS = {
  reads: 512,
  /** For calls that may move money. */
  orders: 512,
  /** Each serves one short exchange at a time. */
  oneTimeUrls: 64,
  /** Each serves one short exchange of a login at a time. */
  identity: 16,
} as const

/** Shorter than any usual keep-alive timeout of a server. */
const ORDER_IDLE_MS = 900

/** The clients of the upstream REST API, each with connections of its own, so that none keeps another waiting. */
export type RestClients = ReturnType<typeof createRestClients>

/** Makes the client that asks for the subject of a session. With its own connections, a slow response keeps no user from the market. */
export function createIdentityClient(config: Config['upstream'], budget?: Budget): RestClient {
  return new RestClient(config, { connections: CONNECTIONS.identity, budgetClass: 'otps' }, budget)
}

/**
 * Makes the clients. Nothing is connected until it is needed.
 * @param budget asked before each request, where there is one
 */
export function createRestClients(config: Config['upstream'], budget?: Budget) {
  const clients = {
    reads: new RestClient(config, { connections: CONNECTIONS.reads, budgetClass: 'reads' }, budget),
    /** For calls that may move money: they never use a connection that upstream, or a proxy before it, is about to close. */
    orders: new RestClient(
      config,
      { connections: CONNECTIONS.orders, idleMs: ORDER_IDLE_MS, budgetClass: 'orders' },
      budget,
    ),
    /** A slow REST API must not keep a user from the market. */
    oneTimeUrls: new RestClient(config, { connections: CONNECTIONS.oneTimeUrls, budgetClass: 'otps' }, budget),
  }
  /** Closes all of them; see {@link RestClient.close}. */
  const close = () => Promise.all(Object.values(clients).map((client) => client.close()))
  return { ...clients, close }
}
