import { once } from 'node:events'
import { WebSocket } from 'ws'

/** How a socket ended, as a page sees it. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A message as it came. */
export interface Received {
  readonly data: Buffer
  readonly isBinary: boolean
}

/** A browser's WebSocket: keeps what came, in order. */
export class BrowserSocket {
  readonly socket: WebSocket
  readonly received: Received[] = []
  /** Resolves when it is over. */
  readonly closed: Promise<Closed>
  readonly #waiting: (() => void)[] = []

  constructor(url: string, headers: Record<string, string>) {
    this.socket = new WebSocket(url, { headers, perMessageDeflate: false, maxPayload: 0 })
    this.socket.on('error', () => undefined)
    this.socket.on('message', (data: Buffer, isBinary) => {
      this.received.push({ data, isBinary })
      for (const wake of this.#waiting.splice(0)) wake()
    })
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() })
        for (const wake of this.#waiting.splice(0)) wake()
      })
    })
  }

  /** Resolves once it is open, with itself. */
  async opened(): Promise<this> {
    await once(this.socket, 'open')
    return this
  }

  /** The status of the HTTP answer that came instead of a WebSocket. */
  async refusedWith(): Promise<number> {
    const [, response] = (await once(this.socket, 'unexpected-response')) as [
      unknown,
      { statusCode: number; resume(): void },
    ]
    response.resume()
    return response.statusCode
  }

  /** Resolves when so many messages have come, or when it is over. */
  async count(messages: number): Promise<Received[]> {
    while (this.received.length < messages && this.socket.readyState !== WebSocket.CLOSED) {
      await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    }
    return this.received
  }

  /** What came so far, as text. */
  get texts(): string[] {
    return this.received.map(({ data }) => data.toString())
  }
}
