import { meansOutOfDescriptors, NO_DESCRIPTOR } from '../../telemetry/descriptors.ts'
import { LATE_MS } from '../../time/deadline.ts'
import type { RedisLink } from '../links/redis-link.ts'

/** A link that is silent for this long is unhealthy: its master is probed every second. */
const MAX_SILENCE_MS = 2000
/** A link that is silent for this long is abandoned. */
const LOST_MS = 2500
const CHECK_INTERVAL_MS = 250

/** Down since when, of a link that has never been healthy. */
const NEVER_UP = -Infinity

/** Error codes of a server that is a replica, or is still loading its data. */
export const NO_MASTER: ReadonlySet<string> = new Set(['READONLY', 'MASTERDOWN', 'LOADING'])

/** The log of the store. */
export interface StoreLog {
  error(details: object, message: string): void
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/**
 * Whether the link to Redis can be relied on. It is unhealthy from a loss, a missed deadline or a silence until the next
 * sign of life; while it is, nothing should be asked. Silence is checked here, the rest is reported.
 */
export class LinkHealth {
  readonly #link: Pick<RedisLink, 'abandon'>
  readonly #log: StoreLog
  readonly #onUnhealthy: () => void
  readonly #watchdog: NodeJS.Timeout
  #downSince: number | undefined = NEVER_UP
  #downReason: string | undefined
  #aliveAt = 0
  /** When the latest loss ended. */
  #upAt = 0
  #checkedAt = performance.now()
  #isClosed = false

  /** @param onUnhealthy called each time that the link becomes unhealthy */
  constructor(link: Pick<RedisLink, 'abandon'>, log: StoreLog, onUnhealthy: () => void) {
    this.#link = link
    this.#log = log
    this.#onUnhealthy = onUnhealthy
    this.#watchdog = setInterval(() => this.#check(), CHECK_INTERVAL_MS)
    this.#watchdog.unref()
  }

  /**
   * Since when the link is unhealthy (monotonic ms): -Infinity until it is healthy for the first time, undefined while it is
   * healthy.
   */
  get downSince(): number | undefined {
    return this.#downSince
  }

  /** Why the link is unhealthy, in a word or two; undefined while it is healthy, and before the first try to connect. */
  get downReason(): string | undefined {
    return this.#downReason
  }

  /** How long ago the link became healthy (ms). 0 while it is unhealthy. */
  get healthyForMs(): number {
    return this.#downSince === undefined ? performance.now() - this.#upAt : 0
  }

  noteAlive(): void {
    this.#aliveAt = performance.now()
    if (this.#downSince === undefined || this.#isClosed) return
    this.#upAt = this.#aliveAt
    this.#downSince = undefined
    this.#downReason = undefined
    this.#log.info({}, 'the session store is connected')
  }

  noteLoss(reason: string): void {
    if (this.#isClosed) return
    const isNew = this.#downSince === undefined
    this.#downSince ??= performance.now()
    // The reason why the link stays down may differ from the reason why it was lost.
    if (isNew || reason !== this.#downReason) {
      if (meansOutOfDescriptors(reason)) this.#log.error({ reason }, NO_DESCRIPTOR)
      else this.#log.warn({ reason }, 'the session store does not respond')
    }
    this.#downReason = reason
    if (isNew) this.#onUnhealthy()
  }

  /** Handles the code of an error reply. The next server that the link finds may be the master. */
  noteErrorCode(code: string): void {
    if (NO_MASTER.has(code)) this.#link.abandon(code)
  }

  /** From now on the link is down for good, which is no loss. */
  close(): void {
    clearInterval(this.#watchdog)
    this.#isClosed = true
    this.#downSince ??= performance.now()
  }

  #check(): void {
    const now = performance.now()
    const lateMs = now - this.#checkedAt - CHECK_INTERVAL_MS
    this.#checkedAt = now
    // While this process was blocked, it could neither ping nor read replies, so that time is no silence.
    if (lateMs > LATE_MS) this.#aliveAt = Math.min(now, this.#aliveAt + lateMs)
    // Replies that have arrived are read first.
    if (now - this.#aliveAt > MAX_SILENCE_MS) setImmediate(() => this.#judge(now))
  }

  #judge(now: number): void {
    const silentMs = now - this.#aliveAt
    if (this.#downSince === undefined && silentMs > MAX_SILENCE_MS) this.noteLoss('silence')
    if (silentMs > LOST_MS) this.#link.abandon('silence')
  }
}
