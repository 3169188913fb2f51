import { apiOf, type Api } from './api.ts'
import type { LoginOptions } from './login.ts'
import { serverAt, type ServerOptions } from './server.ts'
import { sessionOf, type Session } from './session.ts'
import { createSession } from './session-store.ts'
import { Sockets, type PublicSocket, type TradingSocket } from './socket.ts'

/** Everything that a page needs of the server. */
export interface Client {
  readonly session: Session
  readonly api: Api
  /** Leaves the page to log in, and comes back to it. */
  login(options?: LoginOptions): void
  /** Leaves the page to sign up, and comes back to it. */
  signup(options?: LoginOptions): void
  /** Logs out, on all instances and in all tabs. @throws ApiError when the user is still logged in */
  logout(): Promise<void>
  /** Joins the page's connection for market data, or opens it. Close what you no longer need. */
  publicSocket(): PublicSocket
  /** Joins the page's connection for trading on an account, or opens it. Close what you no longer need. */
  tradingSocket(accountId: string): TradingSocket
  /** Ends everything. */
  close(): void
}

/** Makes one for a page. Nothing is sent before something is asked of it, so it may also be made while rendering on a server. */
export function createClient(options: ServerOptions = {}): Client {
  const server = serverAt(options)
  const store = createSession(options)
  const session = sessionOf(server, store)
  const sockets = new Sockets()
  const open = (path: string): TradingSocket =>
    sockets.open(path, { connect: () => server.socket(path), confirm: store.confirm })
  return {
    session,
    api: apiOf(server, () => void store.confirm()),
    login: (init) => location.assign(session.loginUrl('login', init)),
    signup: (init) => location.assign(session.loginUrl('signup', init)),
    logout: () => session.logout(),
    publicSocket: () => open('/ws/public'),
    tradingSocket: (accountId) => open(`/ws/trading/${encodeURIComponent(accountId)}`),
    close() {
      session.close()
      sockets.close()
    },
  }
}
