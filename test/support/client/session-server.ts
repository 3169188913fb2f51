import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'

/** A reason of the session socket's `ended` event. */
export type Reason = 'logout' | 'replaced' | 'expired' | 'idle' | 'refused' | 'revoked' | 'gone'

/**
 * An imitation of the server's session routes (docs/reference.md, The session) for one browser, without cookies: a test
 * sets whether the browser is logged in, when a new cookie takes effect, and whether there is a session socket.
 */
export class SessionServer {
  /** Whether the cookie of the browser names a live session. */
  isLoggedIn = false
  scope = 'trade'
  /** What the operator tells all users. */
  notice: object | undefined
  /** Whose session it is, if the server knows. */
  subject: string | undefined
  /** The query of every POST /auth/logout. */
  readonly logouts: string[] = []
  /** The tag of the session. */
  tag = 'a-session'
  expiresInSeconds = 3600
  /** When the session ends, in seconds since 1970, if that is to be the same in all responses. */
  endsAt: number | undefined
  /** The number of checks that still find no session, as if the cookie had not arrived. */
  blindFor = 0
  /** The status of the responses to GET /auth/session. */
  status = 200
  /** Replaces the body of the responses to GET /auth/session. */
  garbage: string | undefined
  /** Whether there is a session socket. Older servers refuse its handshake. */
  hasSocket = true
  /** Whether the user has too many session sockets already. */
  isFull = false
  /** Delay of the responses to GET /auth/session. */
  delayMs = 0
  /** Pages, by path. */
  files: Readonly<Record<string, string>> = {}
  /** Number of GET /auth/session. */
  checks = 0
  handshakes = 0
  /** Number of POST /auth/session. */
  extended = 0
  readonly #server = createServer((request, response) => void this.#respond(request, response))
  readonly #sockets = new WebSocketServer({ noServer: true })

  /** Starts a server on a free port, whose user is logged in unless the state says otherwise. It ends with the test. */
  static async start(t: Test, state: Partial<SessionServer> = {}): Promise<SessionServer> {
    const server = Object.assign(new SessionServer(), { isLoggedIn: true }, state)
    server.#server.on('upgrade', (request: IncomingMessage, socket, head) => {
      server.handshakes++
      // A page that has left is nothing unusual. Node.js hands the connection over without a listener.
      socket.on('error', () => undefined)
      if (!server.hasSocket) return void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      server.#sockets.handleUpgrade(request, socket, head, (opened) => {
        if (server.isFull) opened.close(4429, 'too_many_relays')
        else if (server.isLoggedIn) opened.send(JSON.stringify({ event: 'session', ...server.body() }))
        else opened.close(4401, 'login_required')
      })
    })
    await once(server.#server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => {
      for (const socket of server.#sockets.clients) socket.terminate()
      server.#server.closeAllConnections()
      server.#server.close()
    })
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The number of open session sockets. */
  get open(): number {
    return [...this.#sockets.clients].filter(({ readyState }) => readyState === 1).length
  }

  body(): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000)
    if (!this.isLoggedIn || this.blindFor-- > 0) return { authenticated: false, now, notice: this.notice }
    this.blindFor = 0
    const expires_at = this.endsAt ?? now + this.expiresInSeconds
    return {
      authenticated: true,
      now,
      expires_at,
      idle_expires_at: expires_at,
      scope: this.scope,
      subject: this.subject,
      notice: this.notice,
      session: this.tag,
    }
  }

  /** Resolves once all session sockets have taken everything that was sent to them. */
  async delivered(): Promise<void> {
    await Promise.all(
      [...this.#sockets.clients].map((socket) => {
        socket.ping()
        return once(socket, 'pong')
      }),
    )
  }

  /** Sends a message to all session sockets. */
  push(message: unknown): void {
    for (const socket of this.#sockets.clients) socket.send(JSON.stringify(message))
  }

  /** Closes all session sockets as at the end of a session. Without a reason, no `ended` event precedes the close. */
  end(reason?: Reason): void {
    if (reason !== undefined) this.push({ event: 'ended', reason })
    this.drop(4401, 'session_expired')
  }

  /** Closes all session sockets. */
  drop(code: number, reason = ''): void {
    for (const socket of this.#sockets.clients) socket.close(code, reason)
  }

  async #respond({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', query = ''] = (url ?? '').split('?')
    if (path === '/auth/logout') {
      this.isLoggedIn = false
      this.logouts.push(query)
      response.writeHead(204).end()
      return this.end('logout')
    }
    const file = this.files[path]
    if (file !== undefined) {
      const type = path.endsWith('.js') ? 'text/javascript' : 'text/html'
      return void response.writeHead(200, { 'content-type': type }).end(file)
    }
    if (url !== '/auth/session') return void response.writeHead(404).end()
    if (method === 'POST') {
      this.extended++
      return void response.writeHead(204).end()
    }
    this.checks++
    const { status } = this
    const body = this.garbage ?? JSON.stringify(this.body())
    if (this.delayMs > 0) await new Promise((resolve) => void setTimeout(resolve, this.delayMs))
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }
}
