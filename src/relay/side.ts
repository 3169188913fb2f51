import type { WebSocket } from 'ws'

/** What Node keeps for a message that waits, however short it is. Counted, since a million empty ones are no small thing. */
const BYTES_PER_MESSAGE = 512

/** One end of a relay: its socket, and when its peer was last heard. Times are ms of the monotonic clock. */
export class Side {
  readonly socket: WebSocket
  /** Messages for its peer that could not be sent at once. */
  waitingMessages = 0
  #heardAt = performance.now()
  #pausedAt: number | undefined

  #isPonging = false
  /** The newest ping that came while a pong was still on its way out. */
  #unanswered: Buffer | undefined

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('pong', () => this.heard())
    socket.on('ping', (data: Buffer) => {
      this.heard()
      this.#pong(data)
    })
  }

  /** True while its peer is kept from talking. */
  get isPaused(): boolean {
    return this.#pausedAt !== undefined
  }

  /** What waits in this process for its peer. */
  get waitingBytes(): number {
    return this.socket.bufferedAmount + this.waitingMessages * BYTES_PER_MESSAGE
  }

  /** Its peer gave a sign of life. */
  heard(): void {
    this.#heardAt = performance.now()
  }

  /** Of pings that come faster than pongs go out the newest is answered (RFC 6455 §5.5.3): no more than two wait here. */
  #pong(data: Buffer): void {
    if (this.#isPonging) {
      this.#unanswered = data
      return
    }
    this.#isPonging = true
    this.socket.pong(data, undefined, (error) => {
      this.#isPonging = false
      const next = this.#unanswered
      this.#unanswered = undefined
      if (next !== undefined && !error) this.#pong(next)
    })
  }

  /** Stops reading from it. The clock of its silence stands still. */
  pause(): void {
    if (this.isPaused) return
    this.#pausedAt = performance.now()
    this.socket.pause()
  }

  /** Reads on. */
  resume(): void {
    if (this.#pausedAt === undefined) return
    this.excuse(performance.now() - this.#pausedAt)
    this.#pausedAt = undefined
    this.socket.resume()
  }

  /** Does not count this time as silence. */
  excuse(ms: number): void {
    this.#heardAt += ms
  }

  /** For how long its peer has been silent; it must not be paused. */
  silentMs(now: number): number {
    return now - this.#heardAt
  }
}
