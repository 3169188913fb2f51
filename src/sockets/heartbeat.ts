import type { Socket } from 'node:net'
import { judgeAfter } from '../time/judge-after.ts'

const HEARTBEAT_MS = 25_000
/** A peer that was silent for this many heartbeats is gone. */
const MAX_SILENT_BEATS = 2

interface Living {
  readonly wire: Pick<Socket, 'bytesRead'>
  ping(): void
}

/**
 * Pings a peer, and notices that it stays silent. The pings are WebSocket pings: the response to upstream's operation `ping` would
 * reach the page, which has not sent one. Times are ms of the monotonic clock.
 */
export class Heartbeat {
  readonly #peer: Living
  readonly #onSilent: () => void
  readonly #everyMs: number
  #heardAt = performance.now()
  #bytesSeen = 0
  #pausedAt: number | undefined
  #beatAt = performance.now()
  #endWait: () => void

  /** @param onSilent called at most once; no ping follows */
  constructor(peer: Living, onSilent: () => void, everyMs = HEARTBEAT_MS) {
    this.#peer = peer
    this.#onSilent = onSilent
    this.#everyMs = everyMs
    this.#endWait = this.#beatIn(everyMs)
  }

  /** The peer has shown that it lives. */
  heard(): void {
    this.#heardAt = performance.now()
  }

  /** True while nothing is read from the peer, which does not count as silence. */
  get isPaused(): boolean {
    return this.#pausedAt !== undefined
  }

  pause(): void {
    this.#pausedAt = performance.now()
  }

  resume(): void {
    this.excuse(performance.now() - (this.#pausedAt ?? 0))
    this.#pausedAt = undefined
  }

  stop(): void {
    this.#endWait()
  }

  /** Counts any bytes since the last check as a sign of life, even if they are only the middle of a long message. */
  checkBytes(lastCheckAt: number): void {
    const { bytesRead } = this.#peer.wire
    if (bytesRead === this.#bytesSeen) return
    this.#bytesSeen = bytesRead
    this.#heardAt = Math.max(this.#heardAt, lastCheckAt)
  }

  /** Does not count this many ms as silence. A peer that was heard meanwhile was not silent for all of them. */
  excuse(ms: number): void {
    this.#heardAt = Math.min(this.#heardAt + ms, performance.now())
  }

  /** How long the peer has been silent. Only valid while it is not paused. */
  silentMs(now: number): number {
    return now - this.#heardAt
  }

  #beatIn(ms: number): () => void {
    const dueAt = performance.now() + ms
    return judgeAfter(ms, () => this.#beat(performance.now() - dueAt))
  }

  /** @param lateMs how long the event loop was blocked, which is no silence of the peer */
  #beat(lateMs: number): void {
    const now = performance.now()
    this.checkBytes(this.#beatAt)
    this.excuse(lateMs)
    let nextMs = this.#everyMs
    // Nothing is read from a paused peer, so it cannot show that it lives, and its pongs would only pile up.
    if (!this.isPaused) {
      const leftMs = MAX_SILENT_BEATS * this.#everyMs - this.silentMs(now)
      if (leftMs <= 0) return this.#onSilent()
      this.#peer.ping()
      nextMs = Math.min(nextMs, Math.ceil(leftMs))
    }
    this.#beatAt = now
    this.#endWait = this.#beatIn(nextMs)
  }
}
