import type { Peer } from './peer.ts'

const HEARTBEAT_MS = 25_000
/** A peer that was silent for this many heartbeats is gone. */
const MAX_SILENT_BEATS = 2

/**
 * Pings the peers of a socket, and reports the first that stays silent. The pings are WebSocket pings: the response to upstream's
 * operation `ping` would reach the page, which has not sent one.
 */
export class Heartbeat {
  readonly #peers: readonly Peer[]
  readonly #onSilent: (peer: Peer) => void
  readonly #everyMs: number
  #beatAt = performance.now()
  #timer: NodeJS.Timeout

  /** @param onSilent called at most once; no ping follows */
  constructor(peers: readonly Peer[], onSilent: (peer: Peer) => void, everyMs = HEARTBEAT_MS) {
    this.#peers = peers
    this.#onSilent = onSilent
    this.#everyMs = everyMs
    this.#timer = this.#beatIn(everyMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #beatIn(ms: number): NodeJS.Timeout {
    const dueAt = performance.now() + ms
    return setTimeout(() => this.#beat(performance.now() - dueAt), ms)
  }

  /** @param lateMs how long the event loop was blocked: messages that arrived meanwhile have not been read yet */
  #beat(lateMs: number): void {
    const now = performance.now()
    let nextMs = this.#everyMs
    for (const peer of this.#peers) {
      peer.checkBytes(this.#beatAt)
      peer.excuse(lateMs)
      // Nothing is read from a paused peer, so it cannot show that it lives, and its pongs would only pile up.
      if (peer.isPaused) continue
      const leftMs = MAX_SILENT_BEATS * this.#everyMs - peer.silentMs(now)
      if (leftMs <= 0) return this.#onSilent(peer)
      peer.socket.ping()
      nextMs = Math.min(nextMs, Math.ceil(leftMs))
    }
    this.#beatAt = now
    this.#timer = this.#beatIn(nextMs)
  }
}
