import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { WebSocketServer, type WebSocket } from 'ws'
import { keepOutOfLogs } from '../telemetry/log-scan.ts'
import { nextEvent, within } from '../time/until.ts'

/** A request as it arrived. */
export interface SeenRequest {
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** What an endpoint does with a request. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** The path of the identity endpoint. */
export const IDENTITY_PATH = '/account/v1/me'

/**
 * The part of upstream that relays use, scripted by a test: it can be slow, wrong or broken. By default it returns
 * one-time URLs (docs/upstream.md, One-time URLs) and opens every socket.
 */
export class ScriptedUpstream {
  /** Answers the OTP endpoint. */
  onOtp: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    answerJson(response, 200, { data: { url: this.otpUrl() } })
  /** Answers the identity endpoint: by default with the user that a token `of-<user>` names. */
  onIdentity: Answer = (request, response) =>
    answerJson(response, 200, { data: { id: request.headers.authorization?.replace('Bearer of-', '') ?? '' } })
  /** Answers every other endpoint. */
  onRest: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    answerJson(response, 200, { data: [] })
  /** Takes a handshake over, before there is a WebSocket. */
  onUpgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined
  /** Called with every new socket, before any message. */
  onSocket: (socket: WebSocket) => void = () => undefined
  readonly otpRequests: SeenRequest[] = []
  readonly identityRequests: IncomingMessage[] = []
  readonly upgrades: SeenRequest[] = []
  readonly #server = createServer((request, response) => this.#answer(request, response))
  readonly #sockets: WebSocketServer
  readonly #connections = new Set<Duplex>()
  readonly #awaited: ((socket: WebSocket) => void)[] = []
  readonly #unclaimed: WebSocket[] = []
  readonly #passwords = new Set<string>()
  #issued = 0

  private constructor(maxPayload: number) {
    keepOutOfLogs(this.#passwords)
    this.#sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload })
    this.#server.on('connection', (socket: Duplex) => {
      this.#connections.add(socket)
      socket.on('close', () => this.#connections.delete(socket)).on('error', () => undefined)
    })
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.upgrades.push({ url: request.url ?? '', headers: request.headers })
      if (this.onUpgrade === undefined) this.accept(request, socket, head)
      else this.onUpgrade(request, socket, head)
    })
  }

  /** Starts one on a free port; it ends with the test. */
  static async start(t: Test, maxPayload = 8 * 1024 * 1024): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(maxPayload)
    await once(upstream.#server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => upstream.close())
    return upstream
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** How many WebSockets are open. */
  get open(): number {
    return this.#sockets.clients.size
  }

  /** A new one-time URL. */
  otpUrl(): string {
    const password = `secret-otp-of-a-test-${++this.#issued}`
    this.#passwords.add(password)
    return `ws://${this.host}/trading/v1/options/ws/demo?otp=${password}`
  }

  /** Completes a handshake. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('error', () => undefined)
      this.onSocket(webSocket)
      const take = this.#awaited.shift()
      if (take === undefined) this.#unclaimed.push(webSocket)
      else take(webSocket)
    })
  }

  /** The next socket that nobody has claimed yet. */
  socket(): Promise<WebSocket> {
    const socket = this.#unclaimed.shift()
    if (socket !== undefined) return Promise.resolve(socket)
    const next = new Promise<WebSocket>((resolve) => void this.#awaited.push(resolve))
    return within(next, 'a socket is opened at upstream')
  }

  /** Ends every connection and stops listening. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = nextEvent(this.#server, 'close')
    this.#server.close()
    for (const connection of this.#connections) connection.destroy()
    await closed
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { url = '', headers, method } = request
    if (url === IDENTITY_PATH) {
      this.identityRequests.push(request)
      return void this.onIdentity(request, response)
    }
    if (method !== 'POST' || !/^\/trading\/v1\/options\/accounts\/[^/]+\/otp$/.test(url)) {
      return this.onRest(request, response)
    }
    this.otpRequests.push({ url, headers })
    this.onOtp(request, response)
  }
}

/** Answers with JSON, or with a text as it is. */
export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
