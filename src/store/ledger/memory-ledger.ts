import { BUDGET_CLASSES, type ByClass } from '../../config/upstream-budget.ts'
import type { Ledger, LedgerReply, LedgerReport, LedgerTerms, LedgerWindow, Spends } from './ledger.ts'

/**
 * The ledger of one process that has no Redis, so of one holder, whose reports all arrive in order. It begins anew with the
 * process: it does not know the calls of its predecessor.
 */
export class MemoryLedger implements Ledger {
  readonly #terms: LedgerTerms
  readonly #now: () => number
  readonly #keepMs: number
  /** Spent tokens by the time at which the last of them may have been spent, the oldest first. */
  readonly #spent = new Map<number, number>()
  /** How many tokens the holder has reported as spent. */
  #reported = 0

  /** @param now the time in ms, of a monotonic clock */
  constructor(terms: LedgerTerms, now: () => number = () => performance.now()) {
    this.#terms = terms
    this.#now = now
    this.#keepMs = Math.max(...terms.windows.map(({ windowMs }) => windowMs)) + terms.marginMs
  }

  async settle({ spent, spends, held, wanted }: LedgerReport): Promise<LedgerReply> {
    const now = this.#now()
    this.#count(now, spends, spent - this.#reported)
    this.#reported = spent
    for (const at of this.#spent.keys()) if (at <= now - this.#keepMs) this.#spent.delete(at)
    return { is: 'settled', ledger: 'memory', at: now, quietMs: 0, ...this.#grant(now, held, wanted) }
  }

  /** @param fresh how many tokens were spent since the last report: those told before them count already */
  #count(now: number, spends: readonly Spends[], fresh: number): void {
    let known = spends.reduce((total, [, count]) => total + count, 0) - fresh
    for (const [agoMs, tokens] of spends) {
      const count = tokens - Math.max(0, Math.min(known, tokens))
      known -= tokens
      const at = Math.ceil((now - agoMs) / this.#terms.bucketMs) * this.#terms.bucketMs
      if (count > 0) this.#spent.set(at, (this.#spent.get(at) ?? 0) + count)
    }
  }

  #grant(now: number, held: ByClass, wanted: ByClass) {
    const windows = this.#terms.windows.map((window) => ({ ...window, used: this.#usedIn(window, now, held) }))
    // Tokens that are held ready for orders are no reason to refuse a read.
    let ready = held.orders
    const granted = { orders: 0, otps: 0, reads: 0 }
    const waitMs = { orders: 0, otps: 0, reads: 0 }
    for (const each of BUDGET_CLASSES) {
      const free = windows.map(({ ceilings, used }) =>
        Math.min(ceilings[each] - used + (each === 'orders' ? 0 : ready), ceilings.orders - used),
      )
      granted[each] = Math.max(0, Math.min(wanted[each], ...free))
      for (const window of windows) window.used += granted[each]
      if (each === 'orders') ready += granted.orders
      if (granted[each] === wanted[each]) continue
      const needed = free.map((count) => 1 + granted[each] - count)
      waitMs[each] = Math.max(...windows.map((window, at) => this.#liftMs(window, now, needed[at] ?? 0)))
    }
    return { granted, waitMs, used: windows.map(({ used }) => used) }
  }

  #usedIn({ windowMs }: LedgerWindow, now: number, held: ByClass): number {
    let used = held.orders + held.otps + held.reads
    for (const [at, count] of this.#spent) if (at > now - windowMs - this.#terms.marginMs) used += count
    return used
  }

  /** How long it takes until this many tokens are free again. */
  #liftMs({ windowMs }: LedgerWindow, now: number, needed: number): number {
    if (needed <= 0) return 0
    let freed = 0
    for (const [at, count] of this.#spent) {
      const liftMs = at + windowMs + this.#terms.marginMs - now
      if (liftMs > 0) freed += count
      if (freed >= needed) return liftMs
    }
    return this.#terms.leaseMs
  }
}
