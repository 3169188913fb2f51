import { randomBytes } from 'node:crypto'
import { once, type Release } from './permits.ts'
import { besideKey } from '../store/keys.ts'
import { SILENCE_MS } from '../store/shared-limits.ts'
import type { Store } from '../store/store.ts'

/** Well below the time after which a silent holder no longer counts. */
const RENEWAL_MS = 10_000
/** Statements that are sent at once. More would delay what else this process has to do. */
const BATCH = 500

/** The part of the store that permits need: their count over all instances, and when it is back. */
export type PermitStore = Pick<Store, 'limits' | 'onChange' | 'unavailableSince'>

/** The permits of one session that this process holds. */
interface Held {
  /** Permits of sockets that are open, or in their handshake. */
  count: number
  /** Claims whose outcome is not known yet. */
  claiming: number
  /** Claims and statements that are on their way to the store. */
  underWay: number
  /** The count in the store, once nothing is under way; undefined where the store may not have heard of it. */
  stated: number | undefined
  /** When the store was last told of a permit (ms of the monotonic clock). */
  toldAt: number
}

/**
 * Permits for the trading sockets of sessions. They count everywhere (docs/operating/limits-and-budget.md, Limits over all instances). The store
 * knows how many permits each process holds. While it is away, this process counts only its own, and states them when the
 * store is back.
 */
export class SessionPermits {
  readonly #store: PermitStore
  readonly #limit: number
  readonly #holder = randomBytes(9).toString('base64url')
  /** By session key. */
  readonly #sessions = new Map<string, Held>()
  #renewals: NodeJS.Timeout | undefined

  /** @param limit permits of one session */
  constructor(store: PermitStore, limit: number) {
    this.#store = store
    this.#limit = limit
    // Perhaps the store is back, and has lost what it knew, or considers this process dead.
    store.onChange((key) => {
      if (key === undefined && store.unavailableSince() === undefined) void this.#state([...this.#sessions.keys()])
    })
  }

  /** Takes a permit of a session. Resolves with undefined when none is left. Never rejects. */
  async acquire(key: string): Promise<Release | undefined> {
    const held = this.#sessions.get(key) ?? { count: 0, claiming: 0, underWay: 0, stated: 0, toldAt: 0 }
    const wanted = held.count + held.claiming + 1
    if (wanted > this.#limit) return undefined
    this.#sessions.set(key, held)
    this.#renewals ??= setInterval(() => void this.#state([...this.#sessions.keys()]), RENEWAL_MS).unref()
    held.claiming++
    held.underWay++
    const isGranted = await this.#claim(key, wanted)
    held.claiming--
    held.toldAt = performance.now()
    if (isGranted) {
      held.count++
      held.stated = wanted
    }
    this.#arrived(key, held)
    return isGranted ? this.#release(key, held) : undefined
  }

  async #claim(key: string, count: number): Promise<boolean> {
    try {
      return await this.#store.limits.claim({ key: besideKey(key, 'relays'), holder: this.#holder, count }, this.#limit)
    } catch {
      // The store is away. A limit within this process is better than no trading.
      return true
    }
  }

  #release(key: string, held: Held): Release {
    return once(() => {
      held.count--
      if (held.underWay === 0) void this.#state([key])
    })
  }

  /** States what this process holds of these sessions. Never rejects. */
  async #state(keys: readonly string[]): Promise<void> {
    const statements: { key: string; held: Held; count: number }[] = []
    for (const key of keys) {
      const held = this.#sessions.get(key)
      if (held === undefined) continue
      held.underWay++
      // The store may have granted a claim whose reply is still on its way.
      const count = held.count + held.claiming
      if (count > 0) held.toldAt = performance.now()
      statements.push({ key, held, count })
    }
    const holdings = statements.map(({ key, count }) => ({
      key: besideKey(key, 'relays'),
      holder: this.#holder,
      count,
    }))
    for (const { held } of statements) held.stated = undefined
    for (let start = 0; start < holdings.length; start += BATCH) {
      try {
        await this.#store.limits.hold(holdings.slice(start, start + BATCH))
        for (const { held, count } of statements.slice(start, start + BATCH)) held.stated = count
      } catch {
        // The next renewal says the same, or the return of the store does. This may be the failure of one master of several.
      }
      if (this.#store.unavailableSince() !== undefined) break
    }
    for (const { key, held } of statements) this.#arrived(key, held)
  }

  /**
   * Something has arrived at the store. If permits have been released in the meantime, or some of several claims were refused,
   * the store has another count than this process.
   */
  #arrived(key: string, held: Held): void {
    held.underWay--
    if (held.underWay > 0) return
    // Until the store has heard it, or has forgotten it, the session is among those of the next renewal, even if nothing is held any more.
    if (held.stated === undefined && performance.now() - held.toldAt <= SILENCE_MS) return
    if ((held.stated ?? 0) !== held.count) return void this.#state([key])
    if (held.count > 0) return
    this.#sessions.delete(key)
    if (this.#sessions.size > 0) return
    clearInterval(this.#renewals)
    this.#renewals = undefined
  }
}
