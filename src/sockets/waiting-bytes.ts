import type { Socket } from 'node:net'

const MIB = 1_048_576
/** Most bytes that may be added beyond the limit before the sockets are weighed again. */
const STEP = 4 * MIB
/** What a peer may have waiting while the limit is reached; whoever has less does not lose. */
export const MIN_BYTES = 65_536
/** The part of the limit that sockets may hold besides while they close, and the least that this is. */
const CLOSING_SHARE = 4
const MIN_CLOSING_BYTES = 16 * MIB

/**
 * The bytes that wait in this process for the peers of its sockets (MAX_WAITING_BYTES). Only what a connection has not taken at once
 * is noted here, so a peer that reads costs nothing. What has left meanwhile is not: when the notes reach the limit, the sockets
 * are weighed, and some of them lose only if so much really waits.
 */
export class WaitingBytes {
  readonly #limit: number
  readonly #step: number
  readonly #relieve: () => number
  /** The bytes of the last weighing, and those added since. */
  #noted = 0
  #weighAt: number
  #isDue = false
  #isReached = false
  /** Connections that are being closed, the oldest first: what waited when the close frame was queued, and how each is cut off. */
  readonly #closing = new Map<Socket, { readonly bytes: number; readonly cut: () => void }>()
  #closingBytes = 0

  /** @param relieve has sockets lose until the open ones hold less than the limit, and returns what these then hold */
  constructor(limit: number, relieve: () => number) {
    this.#limit = limit
    this.#step = Math.min(limit / 64, STEP)
    this.#weighAt = limit
    this.#relieve = relieve
  }

  /** Bytes that wait on connections that are being closed. */
  get closingBytes(): number {
    return this.#closingBytes
  }

  /** How much may wait for one peer before the other is paused: less than usual from when the limit is reached until this turn is over. */
  mostOf(usualBytes: number): number {
    return this.#isReached ? Math.min(usualBytes, MIN_BYTES) : usualBytes
  }

  /** Notes that so many bytes more wait for the peer of an open socket. */
  add(bytes: number): void {
    this.#noted += bytes
    if (this.#noted < this.#weighAt || this.#isDue) return
    this.#isDue = true
    this.#reached()
    // Later, because the socket that loses may be the one that is just sending.
    queueMicrotask(() => {
      this.#isDue = false
      this.#noted = this.#relieve()
      this.#weighAt = Math.max(this.#limit, this.#noted + this.#step)
    })
  }

  /**
   * Notes that a connection is being closed while bytes wait on it, before the close frame. Its peer has time to read both, unless
   * too much waits in this way: then the oldest such connections are cut off.
   */
  closing(connection: Socket, bytes: number, cut: () => void): void {
    this.#closing.set(connection, { bytes, cut })
    this.#closingBytes += bytes
    connection.once('close', () => this.#gone(connection))
    const most = Math.max(this.#limit / CLOSING_SHARE, MIN_CLOSING_BYTES)
    for (const [oldest, { cut }] of this.#closing) {
      if (this.#closingBytes <= most) return
      this.#gone(oldest)
      cut()
    }
  }

  /**
   * While thousands of connections can be read, a turn of the event loop goes on for seconds, and what a closed connection held is
   * only free after it. So less may come in until then: see {@link mostOf}.
   */
  #reached(): void {
    if (this.#isReached) return
    this.#isReached = true
    setImmediate(() => (this.#isReached = false))
  }

  #gone(connection: Socket): void {
    this.#closingBytes -= this.#closing.get(connection)?.bytes ?? 0
    this.#closing.delete(connection)
  }
}
