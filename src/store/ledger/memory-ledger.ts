import { BUDGET_CLASSES, byClass, type ByClass } from '../../config/upstream-budget.ts'
import { SlidingCount } from '../../time/sliding-count.ts'
import type { LedgerReply, LedgerReport, LedgerTerms, LedgerWindow } from './ledger.ts'

/**
 * The ledger of a process without Redis, which is its only holder: both have the same clock, which is never set, and no report is
 * lost or costs anything. A test holds it to the model of the script that Redis runs (settle.lua).
 */
export class MemoryLedger {
  /** Spent tokens by the time at which the last of them may have been spent: whole milliseconds. */
  readonly #spent = new SlidingCount(1)
  /** What the holder had spent by its last report, and has held since, until its lease ends. */
  #before = { spent: 0, held: 0, leaseEndsAt: Infinity }

  /** @param now ms of the monotonic clock */
  settle(terms: LedgerTerms, report: LedgerReport, now: number): LedgerReply {
    this.#countSpends(terms, report, now)
    this.#spent.forget(now - Math.max(...terms.windows.map(({ windowMs }) => windowMs + terms.marginMs)))
    const grant = this.#grant(terms, report, now)
    const { spent, held } = report
    this.#before = { spent, held: sum(held) + sum(grant.granted), leaseEndsAt: now + terms.leaseMs }
    return { is: 'settled', ledger: 'memory', at: now, quietMs: 0, ...grant }
  }

  #countSpends({ bucketMs }: LedgerTerms, { spent, spends }: LedgerReport, now: number): void {
    const { leaseEndsAt, ...before } = this.#before
    const count = (at: number, tokens: number): void => {
      if (tokens > 0) this.#spent.add(Math.ceil(at / bucketMs) * bucketMs, tokens)
    }
    // Everything may have been spent by the end of a lease, and nothing since.
    if (leaseEndsAt <= now) return count(leaseEndsAt, before.held)
    let fresh = spent - before.spent
    for (const [agoMs, tokens] of spends.toReversed()) {
      const told = Math.min(tokens, fresh)
      count(now - agoMs, told)
      fresh -= told
    }
  }

  #grant(terms: LedgerTerms, { wanted, held }: LedgerReport, now: number) {
    const windows = terms.windows.map((window) => {
      return { ...window, used: sum(held) + this.#spent.since(now - window.windowMs - terms.marginMs) }
    })
    // Tokens that are held ready for orders are no reason to refuse a read.
    let ready = held.orders
    const granted = byClass(() => 0)
    const waitMs = byClass(() => 0)
    for (const each of BUDGET_CLASSES) {
      const free = windows.map(({ ceilings, used }) =>
        Math.min(ceilings[each] - used + (each === 'orders' ? 0 : ready), ceilings.orders - used),
      )
      const count = Math.max(0, Math.min(wanted[each], ...free))
      for (const window of windows) window.used += count
      if (each === 'orders') ready += count
      granted[each] = count
      if (count === wanted[each]) continue
      const lifts = windows.map((window, at) => this.#liftMs(window, terms, 1 + count - (free[at] ?? 0), now))
      waitMs[each] = Math.max(...lifts)
    }
    return { granted, waitMs, used: windows.map(({ used }) => used) }
  }

  /** How long it takes until this many tokens are free again. */
  #liftMs({ windowMs }: LedgerWindow, { marginMs, leaseMs }: LedgerTerms, needed: number, now: number): number {
    if (needed <= 0) return 0
    let freed = 0
    for (const { until, count } of this.#spent.slices) {
      const liftMs = until + windowMs + marginMs - now
      if (liftMs > 0) freed += count
      if (freed >= needed) return liftMs
    }
    return leaseMs
  }
}

function sum({ orders, otps, reads }: ByClass): number {
  return orders + otps + reads
}
