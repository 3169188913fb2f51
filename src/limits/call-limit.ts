import { besideKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { standstill } from '../time/standstill.ts'
import { MinuteCounts } from './minute-counts.ts'

/** Whether a call may be made. */
type CallVerdict =
  | { readonly is: 'allowed' }
  | { readonly is: 'refused'; /** Seconds until calls are allowed again. */ readonly retryAfterSeconds: number }

interface Quota {
  left: number
  /** All calls of the minute have been handed out, so nothing is to be asked before it ends. */
  readonly isLast: boolean
  /** By the clock of {@link standstill}, so that neither a machine that stands still nor a changed clock prolongs it. */
  readonly endsAt: number
}

const ALLOWED: CallVerdict = { is: 'allowed' }

/**
 * Counts the calls of each session in minutes of the store's clock, over all instances (API_REQUESTS_PER_MINUTE). An instance
 * takes a quota of calls in advance, so most calls need no round trip. While the store is away, each process counts on its own.
 */
export class CallLimit {
  readonly #store: Pick<Store, 'limits' | 'unavailableSince'>
  readonly #perMinute: number
  /** By session key. */
  readonly #quotas = new Map<string, Quota>()
  readonly #asking = new Map<string, Promise<boolean>>()
  readonly #alone = new MinuteCounts()
  #sweepAt = 0

  constructor(store: Pick<Store, 'limits' | 'unavailableSince'>, perMinute: number) {
    this.#store = store
    this.#perMinute = perMinute
  }

  /** Counts a call of a session. Synchronous while this process has calls of the session left, or knows that there are none. */
  count(sessionKey: string): CallVerdict | Promise<CallVerdict> {
    return this.#spend(sessionKey) ?? this.#countLater(sessionKey)
  }

  #spend(sessionKey: string): CallVerdict | undefined {
    const quota = this.#quotas.get(sessionKey)
    const leftMs = quota === undefined ? 0 : quota.endsAt - standstill.now()
    if (quota === undefined || leftMs <= 0) return undefined
    if (quota.left > 0) {
      quota.left--
      return ALLOWED
    }
    return quota.isLast ? refused(leftMs) : undefined
  }

  async #countLater(sessionKey: string): Promise<CallVerdict> {
    for (;;) {
      if (!(await this.#fetchQuota(sessionKey))) {
        return this.#alone.allows(sessionKey, this.#perMinute) ? ALLOWED : refused(1000 * this.#alone.secondsLeft)
      }
      // Other calls of the session have waited too, and may have spent the quota.
      const verdict = this.#spend(sessionKey)
      if (verdict !== undefined) return verdict
    }
  }

  /** Asks the store for more calls of a session, once for all that wait. Resolves with false while the store is away. */
  #fetchQuota(sessionKey: string): Promise<boolean> {
    const asking = this.#asking.get(sessionKey)
    if (asking !== undefined) return asking
    const question = this.#ask(sessionKey).finally(() => this.#asking.delete(sessionKey))
    this.#asking.set(sessionKey, question)
    return question
  }

  async #ask(sessionKey: string): Promise<boolean> {
    // Measured before the store is asked: the minute may end, or this process may be stopped, before the reply arrives.
    const askedAt = standstill.now()
    try {
      if (this.#store.unavailableSince() !== undefined) return false
      const { calls, endsInMs } = await this.#store.limits.leaseCalls(besideKey(sessionKey, 'calls'), this.#perMinute)
      this.#sweep(askedAt)
      this.#quotas.set(sessionKey, { left: calls, isLast: calls === 0, endsAt: askedAt + endsInMs })
      return true
    } catch {
      return false
    }
  }

  /** Forgets the quotas that have ended. All end with the minute, so this rarely finds any to keep. */
  #sweep(now: number): void {
    if (now < this.#sweepAt) return
    this.#sweepAt = now + 60_000
    for (const [key, { endsAt }] of this.#quotas) if (endsAt <= now) this.#quotas.delete(key)
  }
}

function refused(ms: number): CallVerdict {
  return { is: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)) }
}
