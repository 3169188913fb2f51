import type { ApiPath, EndReason, Message, Operation, OrdersPause, ResponseBody, Responses } from '../core/client.ts'
import { FakeApi, type FakeAnswer, type FakeCall } from './fake-api.ts'
import { FakeNetwork, type NetworkState } from './fake-network.ts'
import { FakeSessions, type FakeSession } from './fake-session.ts'
import type { FakeSocket } from './fake-socket.ts'
import { FakeTrading, type FakeBody, type FakeMessage, type FakeReply, type StreamMembers } from './fake-trading.ts'

/** The server and the trading service that a fake client talks to, in memory. A test drives them. */
export interface FakeServer {
  /** Logs a user in, as in another tab. Resolves once the page knows. */
  logIn(session?: FakeSession): Promise<void>
  /** Logs the same user in in another browser, for a page that lists the user's sessions. @returns the tag of that session */
  logInElsewhere(device?: string): string
  /** Ends the session, as from elsewhere; `logout` by default. Resolves once the page knows. */
  endSession(reason?: EndReason): Promise<void>
  /**
   * Says in the state of the session that orders are paused, or without a pause no longer. Resolves once the page knows. How
   * orders are refused, {@link respond} and {@link reply} say.
   */
  pauseOrders(pause?: OrdersPause): Promise<void>
  /** The addresses that `login()` and `signup()` would have led to. */
  readonly navigations: readonly string[]
  /**
   * Says how calls of the API are answered from now on. The path has no query unless the answer is for that query alone.
   * Without an answer, a call gets 404 `not_found`; without a session, 401 `login_required`.
   * ```ts
   * client.server.respond('GET', '/trading/v1/options/accounts', { data: [{ account_id: 'VRTC100' }] })
   * ```
   */
  respond<M extends keyof Responses, P extends ApiPath<M>>(
    method: M,
    path: P,
    answer: FakeAnswer<ResponseBody<M, P>>,
  ): void
  /** The same for a route of the server itself, such as `POST /auth/logout`, in place of what it does. */
  respond(method: 'GET' | 'POST' | 'DELETE', path: `/auth/${string}`, answer: FakeAnswer<object>): void
  /** The calls that have reached the trading service, oldest first. */
  readonly calls: readonly FakeCall[]
  /**
   * Says how messages with this operation are answered from now on. Without an answer, a stream is silent until
   * {@link push}, and anything else is refused with `NoReply`.
   * ```ts
   * client.server.reply('buy', { buy: { contract_id: 7, transaction_id: 8, … } })
   * client.server.reply('buy', () => client.server.disconnect()) // the answer is lost
   * ```
   */
  reply<O extends Operation>(operation: O, reply: FakeReply<FakeBody<O>>): void
  /** The same for an operation that the package does not know: give the type of the body by hand. */
  reply<Body extends object = never>(
    operation: string,
    reply: [Body] extends [never] ? never : FakeReply<NoInfer<Body>>,
  ): void
  /**
   * Sends a message on every stream whose request has these members.
   * ```ts
   * client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1_700_000_000, quote: 1.5 } })
   * ```
   * @returns how many streams that are
   */
  push<const M extends object>(stream: StreamMembers<M>, body: FakeBody<keyof M & Operation>): number
  /** The messages of the page's sockets, oldest first, without pings. */
  readonly messages: readonly FakeMessage[]
  /**
   * Closes the sockets: all but that of the session, or those of one account. The code is 1006 by default, as after a lost
   * connection. They reconnect at once, unless the code or a `;retry_after=` in the reason asks for a delay.
   */
  disconnect(options?: {
    readonly code?: number | undefined
    readonly reason?: string | undefined
    readonly account?: string | undefined
  }): void
  /** Changes what the network does. It is up at first. */
  setNetwork(state: NetworkState): void
}

/** The parts of a fake server, and how a client reaches them. */
export class ServerInMemory {
  readonly #api = new FakeApi()
  readonly #trading = new FakeTrading()
  readonly sessions = new FakeSessions()
  readonly network = new FakeNetwork()
  readonly #base: string
  readonly #sockets = new Set<FakeSocket>()

  constructor(base: string) {
    this.#base = base
  }

  /** Answers a request as `fetch` does. */
  readonly fetch = (url: string, init: RequestInit): Promise<Response> =>
    new Promise((resolve, reject) => {
      const { signal } = init
      const abort = (): void => reject(signal?.reason as Error)
      if (signal?.aborted) return abort()
      signal?.addEventListener('abort', abort)
      const lose = (): void => reject(new TypeError('Failed to fetch'))
      const [path = '', query = ''] = url.slice(this.#base.length).split('?')
      const handle = (): Promise<Response> =>
        this.#api.handle(path, query, init, (request) => this.sessions.respond(request, query))
      const pass = (response: Response): void => (response.type === 'error' ? lose() : resolve(ofServer(response)))
      const arrive = async (): Promise<void> => {
        try {
          const response = await handle()
          this.network.carry(() => pass(response), lose)
        } catch (error) {
          lose()
          // A mistake in the test, which its runner has to see as well.
          throw error
        }
      }
      void Promise.resolve().then(() => this.network.carry(() => void arrive(), lose))
    })

  /** Takes a socket that a page opens. */
  connect(socket: FakeSocket): void {
    this.#sockets.add(socket)
    socket.onGone = () => this.#sockets.delete(socket)
    const lose = (): void => socket.end(1006, '')
    void Promise.resolve().then(() => this.network.carry(() => this.#accept(socket), lose))
  }

  /** Closes the sockets that fit. */
  #disconnect(code: number, reason: string, fits: (socket: FakeSocket) => boolean): void {
    for (const socket of [...this.#sockets].filter(fits)) socket.end(code, reason)
  }

  /**
   * What a test may do with the server.
   * @param check makes the page ask for its session
   */
  controls(navigations: readonly string[], check: () => Promise<void>): FakeServer {
    const { sessions, network } = this
    const api = this.#api
    const trading = this.#trading
    return {
      async logIn(session = {}) {
        sessions.begin(session)
        await check()
      },
      logInElsewhere: (device) => sessions.beginElsewhere(device),
      async endSession(reason = 'logout') {
        const closeSockets = sessions.end(reason)
        // A page that loses its trading socket first asks several times whether the session has really ended.
        await check()
        closeSockets()
      },
      async pauseOrders(pause) {
        sessions.pauseOrders(pause)
        await check()
      },
      navigations,
      respond: (method: string, path: string, answer: FakeAnswer<unknown>) => api.respond(method, path, answer),
      calls: api.calls,
      reply: (operation: string, reply: FakeReply<object>) => trading.reply(operation, reply),
      push: (stream: Message, body: object) => trading.push(stream, body),
      messages: trading.messages,
      disconnect: ({ code = 1006, reason = '', account } = {}) =>
        this.#disconnect(code, reason, (socket) =>
          account === undefined ? socket.path !== '/ws/session' : socket.account === account,
        ),
      setNetwork: (state) => {
        network.set(state)
        if (state === 'down' || state === 'offline') this.#disconnect(1006, '', () => true)
      },
    }
  }

  #accept(socket: FakeSocket): void {
    if (socket.readyState !== 0) return
    const isPublic = socket.path === '/ws/public'
    socket.onGone = () => {
      this.#sockets.delete(socket)
      this.sessions.left(socket)
      this.#trading.left(socket)
    }
    if (isPublic) socket.open()
    else if (!this.sessions.accept(socket)) return
    if (socket.path !== '/ws/session') this.#trading.accept(socket)
  }
}

/** A response with the header by which the package tells the server from a proxy. */
function ofServer({ body, status, statusText, headers }: Response): Response {
  const all = new Headers(headers)
  if (!all.has('x-request-id')) all.set('x-request-id', 'fake')
  return new Response(body, { status, statusText, headers: all })
}
