import { isCommand } from '../core/sockets/exchange.ts'
import { SLOW_MS, type Faults, type FaultySocket } from './faults.ts'
import { parsed, type Connection, type Traffic } from './traffic.ts'

/** The members of a WebSocket that the package uses. */
type Used = 'readyState' | 'bufferedAmount' | 'onopen' | 'onmessage' | 'onclose' | 'send' | 'close'

/** Calls back in order, each call late while the page is to be slow. */
class InOrder {
  readonly #queue: { readonly at: number; readonly call: () => void }[] = []

  add(call: () => void, isSlow: boolean): void {
    if (!isSlow && this.#queue.length === 0) return call()
    this.#queue.push({ at: isSlow ? performance.now() + SLOW_MS : 0, call })
    if (this.#queue.length === 1) this.#wait()
  }

  #wait(): void {
    const [next] = this.#queue
    if (!next) return
    setTimeout(() => {
      try {
        next.call()
      } finally {
        this.#queue.shift()
        this.#wait()
      }
    }, next.at - performance.now())
  }
}

/** A WebSocket of the client. It notes what passes, and makes of it what the faults demand. */
export class ObservedSocket implements Pick<WebSocket, Used>, FaultySocket {
  onopen: WebSocket['onopen'] = null
  onmessage: WebSocket['onmessage'] = null
  onclose: WebSocket['onclose'] = null
  readonly #socket: WebSocket | undefined
  readonly #connection: Connection
  readonly #traffic: Traffic
  readonly #faults: Faults
  readonly #onSession: () => void
  readonly #leaveFaults: () => void
  readonly #arriving = new InOrder()
  #isFrozen = false
  #hasEnded = false
  /** The command whose answer is to be lost. */
  #doomed: number | undefined

  /** @param open opens the real socket; it may throw */
  constructor(open: () => WebSocket, path: string, traffic: Traffic, faults: Faults, onSession: () => void) {
    this.#traffic = traffic
    this.#faults = faults
    this.#onSession = onSession
    const isRefused = faults.has('offline') || (faults.has('sessionEnded') && path !== '/ws/public')
    this.#socket = isRefused ? undefined : open()
    this.#connection = traffic.connection(path, () => this.bufferedAmount)
    this.#leaveFaults = faults.watch(this)
    if (this.#socket) this.#follow(this.#socket)
    else if (faults.has('offline')) setTimeout(() => this.#end(1006))
    else setTimeout(() => this.endSession())
  }

  /** As the page has been told: what the real socket has done since may be on its way. */
  get readyState(): WebSocket['readyState'] {
    if (this.#hasEnded) return WebSocket.CLOSED
    return this.#connection.state === 'open' ? WebSocket.OPEN : WebSocket.CONNECTING
  }

  get bufferedAmount(): number {
    return this.#socket?.bufferedAmount ?? 0
  }

  send(text: string): void {
    this.#traffic.frame(this.#connection, 'out', text)
    if (this.#isFrozen) return
    const message = parsed(text)
    // Both sides agree on the number, since the package sets it.
    if (message.req_id !== undefined && isCommand(message) && this.#faults.takeLostAnswer())
      this.#doomed = message.req_id
    this.#socket?.send(text)
  }

  close(): void {
    this.#hasEnded = true
    this.#socket?.close()
    this.#leaveFaults()
    this.#traffic.closed(this.#connection)
  }

  freeze(): void {
    this.#isFrozen = true
  }

  thaw(): void {
    if (this.#isFrozen) this.#end(1006)
  }

  endSession(): void {
    if (this.#connection.path === '/ws/public') return
    if (this.#connection.path === '/ws/session') this.#deliver('{"event":"ended","reason":"idle"}')
    this.#end(4401, 'session_expired')
  }

  #follow(socket: WebSocket): void {
    const later = (call: () => void): void =>
      this.#arriving.add(() => this.#isFrozen || this.#hasEnded || call(), this.#faults.has('slow'))
    socket.onopen = (event) =>
      later(() => {
        this.#connection.state = 'open'
        this.#traffic.changed()
        this.onopen?.call(socket, event)
      })
    socket.onmessage = ({ data }) =>
      later(() => {
        if (this.#doomed !== undefined && parsed(String(data)).req_id === this.#doomed) this.#end(1006)
        else this.#deliver(data)
      })
    socket.onclose = ({ code, reason }) => later(() => this.#end(code, reason))
  }

  #deliver(data: unknown): void {
    this.#traffic.frame(this.#connection, 'in', data)
    if (this.#connection.path === '/ws/session') this.#onSession()
    this.onmessage?.call(this as unknown as WebSocket, new MessageEvent('message', { data }))
  }

  /** The connection ends, as the page sees it. */
  #end(code: number, reason = ''): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#socket?.close()
    this.#leaveFaults()
    this.#traffic.closed(this.#connection, code, reason)
    this.onclose?.call(this as unknown as WebSocket, new CloseEvent('close', { code, reason }))
  }
}
