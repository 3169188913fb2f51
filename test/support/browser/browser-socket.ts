import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { nextEvent, until, within } from '../time/until.ts'

/** The code and the reason that a page sees when its socket closes. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A message as it arrived. */
export interface Received {
  readonly data: Buffer
  readonly isBinary: boolean
}

/** A browser's WebSocket. It keeps every message, in order. */
export class BrowserSocket {
  readonly socket: WebSocket
  readonly received: Received[] = []
  readonly #closed: Promise<Closed>

  constructor(url: string, headers: Record<string, string>) {
    this.socket = new WebSocket(url, { headers, perMessageDeflate: false, maxPayload: 0 })
    this.socket.on('error', () => undefined)
    this.socket.on('message', (data: Buffer, isBinary) => this.received.push({ data, isBinary }))
    this.#closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /** Resolves once the socket is closed; the deadline starts when this is read. */
  get closed(): Promise<Closed> {
    return within(this.#closed, 'a socket of a browser is closed')
  }

  /** Resolves with this once the socket is open. */
  async opened(): Promise<this> {
    await nextEvent(this.socket, 'open')
    return this
  }

  /** The status of the HTTP response that came instead of a WebSocket. */
  async refusedWith(): Promise<number> {
    const [, response] = (await nextEvent(this.socket, 'unexpected-response')) as [unknown, IncomingMessage]
    response.resume()
    return response.statusCode ?? 0
  }

  /** Resolves with all messages once there are `messages` of them, or once the socket is closed. */
  async count(messages: number): Promise<Received[]> {
    await until(
      () => this.received.length >= messages || this.socket.readyState === WebSocket.CLOSED,
      `a browser receives ${messages} messages`,
    )
    return this.received
  }

  /** The messages so far, as text. */
  get texts(): string[] {
    return this.received.map(({ data }) => data.toString())
  }
}
