import { judgeAfter } from '../time/judge-after.ts'
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
  #endWait: () => void

  /** @param onSilent called at most once; no ping follows */
  constructor(peers: readonly Peer[], onSilent: (peer: Peer) => void, everyMs = HEARTBEAT_MS) {
    this.#peers = peers
    this.#onSilent = onSilent
    this.#everyMs = everyMs
    this.#endWait = this.#beatIn(everyMs)
  }

  stop(): void {
    this.#endWait()
  }

  #beatIn(ms: number): () => void {
    const dueAt = performance.now() + ms
    return judgeAfter(ms, () => this.#beat(performance.now() - dueAt))
  }

  /** @param lateMs how long the event loop was blocked, which is no silence of the peers */
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
    this.#endWait = this.#beatIn(nextMs)
  }
}
