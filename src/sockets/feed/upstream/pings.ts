import type { Listener, WriteRequest } from './connection-users.ts'

/** After this many seconds without a message, upstream is asked for a sign of life. */
const SILENT_SECONDS = 5
/** A connection on which nothing comes for this many more seconds is lost. */
const LOST_SECONDS = 10

/** An open connection that is pinged. */
interface PingedConnection {
  /** Whether anything is expected on it. */
  readonly isAwaited: boolean
  send(write: WriteRequest, listener: Listener): void
  lose(why: string): void
}

/**
 * Asks upstream's `ping` on one connection, so that upstream keeps it, and to learn whether a silent upstream is still there. A WebSocket
 * ping does not show that: whatever stands before upstream may answer it. Seconds are counted, not read from a clock: while the
 * process stands still, nothing can be heard, and no second passes.
 */
export class Pings {
  readonly #connection: PingedConnection
  readonly #timer = setInterval(() => this.#second(), 1000)
  /** The ticks of the timer since the last message. */
  #ticks = 0
  #isAsked = false
  /** Whether the ping that waits for its answer did so when the last one was due, too. */
  #isOverdue = false
  #waiting: (() => void)[] = []

  constructor(connection: PingedConnection) {
    this.#connection = connection
  }

  /** Whether upstream has been silent for too long on a connection on which something is expected. */
  get isSilent(): boolean {
    return this.#ticks > SILENT_SECONDS
  }

  /** Calls back once upstream is no longer silent, or the connection is lost. */
  afterSilence(callback: () => void): void {
    this.#waiting.push(callback)
  }

  heard(): void {
    this.#ticks = 0
    if (this.#waiting.length > 0) this.#release()
  }

  /**
   * Sends a ping, so that upstream keeps the connection. One that upstream has not answered since the last call costs the
   * connection.
   */
  keepAlive(): void {
    if (this.#isOverdue) return this.#connection.lose('ping not answered')
    // One that was sent because of a silence a moment ago will do.
    if (!this.#isAsked) this.#ask()
    this.#isOverdue = true
  }

  /** The connection has ended. Its listeners and its owner have been told. */
  end(): void {
    clearInterval(this.#timer)
    this.#release()
  }

  #second(): void {
    if (!this.#connection.isAwaited) return this.heard()
    this.#ticks++
    // The first tick may come at any time of the first second.
    if (this.#ticks === 1 + SILENT_SECONDS && !this.#isAsked) this.#ask()
    if (this.#ticks > SILENT_SECONDS + LOST_SECONDS) this.#connection.lose('silent')
  }

  #ask(): void {
    this.#isAsked = true
    const received = (): void => {
      this.#isAsked = this.#isOverdue = false
    }
    this.#connection.send((reqId) => `{"ping":1,"req_id":${reqId}}`, { isAnsweredOnce: true, received })
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const callback of waiting) callback()
  }
}
