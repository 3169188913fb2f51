import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'

/** Why a session ends, as the session socket says. */
export type Reason = 'logout' | 'replaced' | 'expired' | 'idle' | 'refused' | 'revoked' | 'gone'

/**
 * The part of the server that says who is logged in (docs/reference.md, The session), for one browser whose cookie a test
 * holds in its hand: it can log in, be slow to take a new cookie, or have no session socket.
 */
export class SessionServer {
  /** What GET /auth/session says of the browser's cookie. */
  isLoggedIn = false
  scope = 'trade'
  expiresInSeconds = 3600
  /** Asked so often it still knows nothing of the cookie: it is under way. */
  blindFor = 0
  /** Answers of another status instead. */
  status = 200
  /** An older server has none: the handshake fails. */
  hasSocket = true
  /** Delays the answers to GET /auth/session. */
  delayMs = 0
  /** Pages, by path. */
  files: Readonly<Record<string, string>> = {}
  asked = 0
  handshakes = 0
  /** How often the page said that its user is there. */
  extended = 0
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #sockets = new WebSocketServer({ noServer: true })

  /** Starts one on a free port; it ends with the test. */
  static async start(t: Test): Promise<SessionServer> {
    const server = new SessionServer()
    server.#server.on('upgrade', (request: IncomingMessage, socket, head) => {
      server.handshakes++
      if (!server.hasSocket) return void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      server.#sockets.handleUpgrade(request, socket, head, (opened) => {
        if (server.isLoggedIn) opened.send(JSON.stringify({ event: 'session', ...server.body() }))
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

  /** Session sockets that are open. */
  get open(): number {
    return [...this.#sockets.clients].filter(({ readyState }) => readyState === 1).length
  }

  body(): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000)
    if (!this.isLoggedIn || this.blindFor-- > 0) return { authenticated: false, now }
    this.blindFor = 0
    const expires_at = now + this.expiresInSeconds
    return { authenticated: true, now, expires_at, idle_expires_at: expires_at, scope: this.scope }
  }

  /** Pushes a message to all session sockets. */
  push(message: Record<string, unknown>): void {
    for (const socket of this.#sockets.clients) socket.send(JSON.stringify(message))
  }

  /** Ends the session of the sockets, with the event unless it cannot be told any more. */
  end(reason?: Reason): void {
    if (reason !== undefined) this.push({ event: 'ended', reason })
    this.drop(4401, 'session_expired')
  }

  /** Closes all session sockets. */
  drop(code: number, reason = ''): void {
    for (const socket of this.#sockets.clients) socket.close(code, reason)
  }

  async #answer({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (url === '/auth/logout') {
      this.isLoggedIn = false
      response.writeHead(204).end()
      return this.end('logout')
    }
    const [path = ''] = (url ?? '').split('?')
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
    this.asked++
    const { status } = this
    const body = JSON.stringify(this.body())
    if (this.delayMs > 0) await new Promise((resolve) => void setTimeout(resolve, this.delayMs))
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }
}
