import { BUDGET_CLASSES, type BudgetClass, type ByClass } from '../../../src/config/upstream-budget.ts'
import { SlidingCount } from '../../../src/time/sliding-count.ts'
import {
  LEDGER,
  type LedgerReply,
  type LedgerReport,
  type LedgerTerms,
  type LedgerWindow,
} from '../../../src/store/ledger/ledger.ts'

/** Who keeps the ledger: its clock (ms), and an id that changes when it may have forgotten something. */
interface Keeper {
  readonly timeOfDay: number
  readonly run: string
  /** How long a ledger that may have forgotten something grants nothing. */
  readonly quietMs: number
}

interface Holder {
  readonly sequence: number
  readonly spent: number
  readonly expiresAt: number
  readonly held: ByClass
  /** Tokens that have counted as spent since the lease ended. */
  readonly lapsed: number
}

const NOTHING: ByClass = { orders: 0, otps: 0, reads: 0 }

/** What the script does that Redis runs (settle.lua), for simulations. A test runs both on the same reports. */
export class LedgerModel {
  #id: string | undefined
  #run = ''
  /** The ledger's clock, and its distance from that of its keeper. It never runs faster than its holders' clocks. */
  #now = 0
  #offset = 0
  #quietUntil = 0
  /** How long spent tokens are kept: for the longest window of those that have reported within it. */
  #keepMs = 0
  #keepUntil = 0
  readonly #holders = new Map<string, Holder>()
  /** Spent tokens by the time at which the last of them may have been spent: whole milliseconds. */
  readonly #spent = new SlidingCount(1)

  settle(terms: LedgerTerms, report: LedgerReport, keeper: Keeper): LedgerReply {
    const isNew = this.#id === undefined
    this.#id ??= `${report.holder}.${report.sequence}`
    const now = this.#advance(report, keeper, isNew)
    if (isNew || keeper.run !== this.#run) this.#quietUntil = now + keeper.quietMs
    this.#run = keeper.run
    const ownMs = Math.max(...terms.windows.map(({ windowMs }) => windowMs + terms.marginMs))
    if (ownMs >= this.#keepMs || now > this.#keepUntil) {
      this.#keepMs = ownMs
      this.#keepUntil = now + ownMs
    }
    this.#endLeases(terms)
    this.#prune()
    const before = this.#holders.get(report.holder)
    if (before !== undefined && report.sequence <= before.sequence) return { is: 'outdated' }
    if (!this.#countSpends(terms, report, before)) return { is: 'unknown' }
    const { sequence, spent, held } = report
    const expiresAt = now + terms.leaseMs + LEDGER.leaseSkewMs
    this.#holders.set(report.holder, { sequence, spent, expiresAt, held, lapsed: 0 })
    const { granted, waitMs, used } = this.#grant(terms, report)
    const kept = {
      orders: held.orders + granted.orders,
      otps: held.otps + granted.otps,
      reads: held.reads + granted.reads,
    }
    this.#holders.set(report.holder, { sequence, spent, expiresAt, held: kept, lapsed: 0 })
    const quietMs = Math.max(0, this.#quietUntil - now)
    return { is: 'settled', ledger: this.#id, at: now, granted, waitMs, quietMs, used }
  }

  /** A copy, as a replica has one. */
  clone(): LedgerModel {
    const copy = new LedgerModel()
    copy.#id = this.#id
    copy.#run = this.#run
    copy.#now = this.#now
    copy.#offset = this.#offset
    copy.#quietUntil = this.#quietUntil
    copy.#keepMs = this.#keepMs
    copy.#keepUntil = this.#keepUntil
    for (const [key, value] of this.#holders) copy.#holders.set(key, value)
    for (const { until, count } of this.#spent.slices) copy.#spent.add(until, count)
    return copy
  }

  /** Where the keeper's clock jumps, the ledger's does not: a slow clock only delays calls, a fast one breaks the promise. */
  #advance(report: LedgerReport, keeper: Keeper, isNew: boolean): number {
    const shown = keeper.timeOfDay + this.#offset
    const last = isNew ? shown : this.#now
    // A holder that has heard nothing yet cannot tell whether the keeper's clock has jumped.
    const latest = report.ledger === this.#id ? report.heardAt + report.sinceMs : last
    const skewMs = report.ledger === this.#id && keeper.run === this.#run ? LEDGER.clockSkewMs : 0
    this.#now = Math.max(last, shown > latest + skewMs ? latest : shown)
    this.#offset = this.#now - keeper.timeOfDay
    return this.#now
  }

  /** A holder that has not reported in time may have spent everything, up to the end of its lease. */
  #endLeases(terms: LedgerTerms): void {
    for (const [id, holder] of this.#holders) {
      const count = sum(holder.held)
      if (holder.expiresAt > this.#now || count === 0) continue
      this.#count(terms, holder.expiresAt, count)
      this.#holders.set(id, { ...holder, held: NOTHING, lapsed: holder.lapsed + count })
    }
  }

  /** Counts what the holder has spent since it was heard before. Returns false if the report does not tell all of it. */
  #countSpends(terms: LedgerTerms, { spent, spends, isWhole }: LedgerReport, before: Holder | undefined): boolean {
    let fresh = before === undefined ? Infinity : spent - before.spent
    const told = spends.reduce((total, [, count]) => total + count, 0)
    if (told < fresh && !isWhole) return false
    // These count already, from the end of the lease: so they stand for tokens that were spent by then, but not for later ones.
    let lapsed = before?.lapsed ?? 0
    for (const [agoMs, count] of spends.toReversed()) {
      const at = this.#now - agoMs
      const known = before !== undefined && at <= before.expiresAt ? Math.min(count, fresh, lapsed) : 0
      this.#count(terms, at, Math.min(count, fresh) - known)
      fresh -= Math.min(count, fresh)
      lapsed -= known
    }
    return true
  }

  #prune(): void {
    const oldest = this.#now - this.#keepMs
    this.#spent.forget(oldest)
    for (const [id, { expiresAt }] of this.#holders) if (expiresAt <= oldest) this.#holders.delete(id)
  }

  #count({ bucketMs }: LedgerTerms, at: number, count: number): void {
    if (count > 0) this.#spent.add(Math.ceil(at / bucketMs) * bucketMs, count)
  }

  #grant(terms: LedgerTerms, { wanted, lapsed }: LedgerReport) {
    const holders = [...this.#holders.values()].filter(({ expiresAt }) => expiresAt > this.#now)
    const held = holders.reduce((total, holder) => total + sum(holder.held), 0)
    const usedIn = ({ windowMs }: LedgerWindow): number =>
      held + this.#spent.since(this.#now - windowMs - terms.marginMs)
    const windows = terms.windows.map((window) => ({ ...window, used: usedIn(window) }))
    // Tokens that are held ready for orders are no reason to refuse a read.
    let ready = holders.reduce((total, holder) => total + holder.held.orders, 0)
    const pauseMs = this.#quietUntil - this.#now
    const granted = { ...NOTHING }
    const waitMs = { ...NOTHING }
    for (const each of BUDGET_CLASSES) {
      const free = windows.map(({ ceilings, used }) =>
        Math.min(ceilings[each] - used + (each === 'orders' ? 0 : ready), ceilings.orders - used),
      )
      const reclaimed = each === 'orders' ? Math.min(lapsed, wanted.orders) : 0
      const count = pauseMs > 0 ? reclaimed : Math.max(0, Math.min(wanted[each], ...free))
      for (const window of windows) window.used += count
      if (each === 'orders') ready += count
      granted[each] = count
      if (count === wanted[each]) continue
      const lifts = windows.map((window, at) => this.#liftMs(window, terms, 1 + count - (free[at] ?? 0)))
      waitMs[each] = pauseMs > 0 ? pauseMs : Math.max(spacingMs(terms, each, holders.length), ...lifts)
    }
    return { granted, waitMs, used: windows.map(({ used }) => used) }
  }

  /** How long it takes until this many tokens are free again. */
  #liftMs({ windowMs }: LedgerWindow, { marginMs, leaseMs }: LedgerTerms, needed: number): number {
    if (needed <= 0) return 0
    let freed = 0
    for (const { until, count } of this.#spent.slices) {
      const liftMs = until + windowMs + marginMs - this.#now
      if (liftMs > 0) freed += count
      if (freed >= needed) return liftMs
    }
    return leaseMs
  }
}

/** The pause that lets enough tokens become free for each of the holders, so that a report is worth its while. */
function spacingMs({ windows, leaseMs }: LedgerTerms, budgetClass: BudgetClass, holders: number): number {
  const slowest = Math.min(...windows.map(({ ceilings, windowMs }) => ceilings[budgetClass] / windowMs))
  const shortestMs = windows[0]?.windowMs ?? 0
  const eachMs = Math.max(LEDGER.tokensPerReport / slowest, shortestMs / LEDGER.reportsPerWindow)
  return Math.floor(Math.min(leaseMs * LEDGER.renewPart, eachMs * holders))
}

function sum({ orders, otps, reads }: ByClass): number {
  return orders + otps + reads
}
