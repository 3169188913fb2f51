import { withoutDelay, type FakeNetwork } from './fake-network.ts'

/** Both ends of a WebSocket: that of the page has the names of the browser. */
export class FakeSocket {
  /** As in a browser: 0 connecting, 1 open, 3 closed. */
  readyState: 0 | 1 | 3 = 0
  readonly bufferedAmount = 0
  onopen: (() => void) | null = null
  onmessage: ((event: { readonly data: string }) => void) | null = null
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null = null
  /** Called with every message of the page. */
  onText: (text: string) => void = () => undefined
  /** Called when either side has closed the connection. */
  onGone: () => void = () => undefined
  readonly path: string
  readonly #network: FakeNetwork

  constructor(network: FakeNetwork, url: string) {
    this.#network = network
    this.path = new URL(url).pathname
  }

  /** The account of a trading socket; undefined for any other. */
  get account(): string | undefined {
    return /^\/ws\/trading\/(.+)$/.exec(this.path)?.[1]
  }

  send(text: string): void {
    void Promise.resolve().then(() => this.#carry(() => this.onText(text)))
  }

  close(): void {
    if (this.readyState === 3) return
    this.readyState = 3
    this.onGone()
  }

  /** Opens the connection for the page. */
  open(): void {
    this.readyState = 1
    this.onopen?.()
  }

  /** Sends a message to the page. */
  deliver(message: object): void {
    this.#carry(() => this.onmessage?.({ data: JSON.stringify(message) }))
  }

  /** Closes the connection. The page reconnects at once where nothing asks for a delay. */
  end(code: number, reason: string): void {
    if (this.readyState === 3) return
    this.close()
    const closed = (): void => this.onclose?.({ code, reason })
    if (this.#network.state === 'up') withoutDelay(closed)
    else closed()
  }

  /** What is under way on a connection that closes is lost. */
  #carry(pass: () => void): void {
    this.#network.carry(
      () => this.readyState === 1 && pass(),
      () => undefined,
    )
  }
}
