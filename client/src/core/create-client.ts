import { apiOf, type Api } from './api/api.ts'
import { call } from './api/call.ts'
import { keyUses } from './api/key-use.ts'
import { ApiError } from './base/errors.ts'
import { serverClock, type ServerTime } from './base/server-clock.ts'
import type { Core } from './core.ts'
import { serverAt, type Server, type ServerOptions } from './server.ts'
import type { LoginOptions } from './session/login.ts'
import { sessionOf, type LogoutOptions, type Session } from './session/session.ts'
import { SessionFollower } from './session/session-follower.ts'
import { sessionKey } from './session/session-state.ts'
import { Sockets, type PublicSocket, type TradingSocket } from './sockets/socket.ts'

/** Everything that a page needs to talk to the server. */
export interface Client {
  /** The session of the user: whether there is one, until when, and how to log in and out. */
  readonly session: Session
  /** Calls the API of the trading service. */
  readonly api: Api
  /** Navigates to the login. Afterwards the user returns to this page, or to `returnTo`. */
  login(options?: LoginOptions): void
  /** Navigates to the sign-up. Afterwards the user returns to this page, or to `returnTo`. */
  signup(options?: LoginOptions): void
  /** Logs out: the same as {@link Session.logout}. */
  logout(options?: LogoutOptions): Promise<void>
  /**
   * Opens a socket for market data, which needs no login. All public sockets of a client share one connection. Close the
   * socket when you no longer need it.
   */
  publicSocket(): PublicSocket
  /**
   * Opens a socket for trading on an account of the user. All sockets of a client for the same account share one
   * connection, unless the session has changed between them. Close the socket when you no longer need it.
   * @throws TypeError if this cannot be the id of an account
   */
  tradingSocket(accountId: string): TradingSocket
  /**
   * The time by the clock of the server, for countdowns that must be right on a machine whose clock is wrong. Undefined until the
   * session has been followed or asked for.
   */
  serverNow(): ServerTime | undefined
  /**
   * Closes every socket, also those that are asked for later, and stops following the session, for a page that goes on without
   * its client.
   */
  close(): void
}

/** Options of {@link createClient}. */
export interface ClientOptions extends ServerOptions {
  /** Lets `trading-bff-client/devtools` see what this client does. For development: `import.meta.env.DEV`, for example. */
  readonly debug?: boolean | undefined
}

/** A client with `debug`, and the connection to its server, whose functions the devtools replace. */
export type Debugged = readonly [client: Client, server: Server]

/** Where the devtools find these. They put something of their own in place of the list. */
export interface DebugScope {
  tradingBff?: { push(entry: Debugged): unknown }
}

/**
 * Creates the client of a page; one is enough. It sends nothing until you use it, so you can also create it while a
 * server renders the page.
 * ```ts
 * const client = createClient({ baseUrl: 'https://bff.example.com' })
 * ```
 */
export function createClient(options: ClientOptions = {}): Client {
  const clock = serverClock()
  const server = serverAt(options, clock)
  const store = new SessionFollower(server)
  const core: Core = {
    server,
    store,
    clock,
    ask: (path, init) => call(server, path, { method: 'POST', ...init }, true),
    useKey: keyUses(server, store),
    ApiError,
  }
  const session = sessionOf(core)
  const sockets = new Sockets(core)
  const client: Client = {
    session,
    api: apiOf(core),
    serverNow: clock.get,
    login: (init) => location.assign(session.loginUrl('login', init)),
    signup: (init) => location.assign(session.loginUrl('signup', init)),
    logout: session.logout,
    // The trading service allows few connections of a user, so only public sockets may have more than one.
    publicSocket: () => sockets.open('/ws/public', 2),
    tradingSocket(accountId) {
      // The server answers 404 to any other id, which a page cannot tell from a lost connection.
      if (!/^[\w-]{1,64}$/.test(accountId)) throw new TypeError(`not an account id: ${accountId}`)
      return sockets.open(`/ws/trading/${accountId}`, 0, () => sessionKey(store.get()))
    },
    close() {
      session.close()
      sockets.close()
    },
  }
  if (options.debug) ((globalThis as DebugScope).tradingBff ??= [] as Debugged[]).push([client, server])
  return client
}
