import { byClass, type BudgetClass, type ByClass } from '../../config/upstream-budget.ts'
import type { LedgerTerms, Spends } from '../../store/ledger/ledger.ts'
import { SlidingCount } from '../../time/sliding-count.ts'
import type { Clock } from './clock.ts'

/** The classes whose tokens a call may spend, its own first: a token for a read is as good for an order. */
const SPENDABLE: Readonly<Record<BudgetClass, readonly BudgetClass[]>> = {
  orders: ['orders', 'otps', 'reads'],
  otps: ['otps', 'reads'],
  reads: ['reads'],
}

/**
 * The ledger gives lapsed tokens back only within this part of the shortest window. Until then they count as spent, even
 * where the window is shorter than a lease and the report is slow.
 */
const GIVE_BACK_PART = 1 / 2

/** A token that was taken for a call. */
export interface Token {
  /** Whether it is of the part of the budget that is set aside for a process without Redis. */
  readonly isAlone?: true
  /** Spends it. Returns false if the lease has ended meanwhile. */
  spend(): boolean
  /** Gives it back unspent. */
  release(): void
}

/** The tokens that this process holds, all until the same time, and a record of those that it has spent. */
export class Lease {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #historyMs: number
  readonly #giveBackMs: number
  readonly #free = byClass(() => 0)
  /** Taken, but not spent yet. */
  readonly #taken = byClass(() => 0)
  #endsAt = -Infinity
  /** The same as a time of day. Whichever clock is there first ends the lease. */
  #endsAtTimeOfDay = -Infinity
  #hasEnded = true
  /** The tokens that were not spent when the lease ended. They are reported as spent, so the ledger gives them to no other process. */
  #lapsed = 0
  /** Grows when a lease ends, and all of its tokens with it. */
  #number = 0
  #spent = 0
  /** Those that may still count. */
  readonly #spends: SlidingCount

  constructor(clock: Clock, { windows, leaseMs, marginMs, bucketMs }: LedgerTerms) {
    const lengths = windows.map(({ windowMs }) => windowMs)
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#historyMs = Math.max(...lengths) + marginMs
    this.#spends = new SlidingCount(bucketMs)
    this.#giveBackMs = Math.min(leaseMs, Math.min(...lengths) * GIVE_BACK_PART)
  }

  /** All tokens that this process has ever spent, or that have lapsed. */
  get spent(): number {
    return this.#spent
  }

  /** Whether nothing can be spent before the ledger grants something. */
  get isOver(): boolean {
    this.#endIfOver()
    return this.#hasEnded
  }

  /** The tokens of a class that a call may take. */
  free(budgetClass: BudgetClass): number {
    this.#endIfOver()
    return this.#free[budgetClass]
  }

  /** Tokens of a lease that ended a short time ago. They cannot be spent, unless the ledger gives them back. */
  get lapsed(): number {
    return this.isOver && !this.#hasEndedFor(this.#giveBackMs) ? this.#lapsed : 0
  }

  /** Takes a token for a call of this class. */
  take(budgetClass: BudgetClass): Token | undefined {
    this.#endIfOver()
    const from = SPENDABLE[budgetClass].find((each) => this.#free[each] > 0)
    if (from === undefined) return undefined
    this.#free[from]--
    this.#taken[from]++
    const number = this.#number
    return {
      spend: () => {
        this.#endIfOver()
        if (number !== this.#number) return false
        this.#taken[from]--
        this.#noteSpent(1, this.#clock.now())
        return true
      },
      release: () => {
        if (number !== this.#number) return
        this.#taken[from]--
        this.#free[from]++
      },
    }
  }

  /** Keeps at most this many free tokens of each class. Returns all that are kept, including the taken ones, for the ledger. */
  keep(most: ByClass): ByClass {
    this.#endIfOver()
    return byClass((each) => {
      this.#free[each] = Math.min(this.#free[each], most[each])
      return this.#free[each] + this.#taken[each]
    })
  }

  /**
   * Extends the lease and adds tokens.
   * @param sentAt when the report that brought them was sent, by both clocks: a lease counts from there
   */
  renew(granted: ByClass, sentAt: { readonly now: number; readonly timeOfDay: number }): void {
    this.#endIfOver()
    this.#hasEnded = false
    this.#endsAt = sentAt.now + this.#leaseMs
    this.#endsAtTimeOfDay = sentAt.timeOfDay + this.#leaseMs
    for (const [each, count] of Object.entries(granted)) this.#free[each as BudgetClass] += count
  }

  /** When the last tokens were spent, for the ledger: at least this many, or all within the longest window if they are fewer. */
  spends(count: number): Spends[] {
    const now = this.#clock.now()
    const last: Spends[] = []
    let told = 0
    for (const { until, count: tokens } of this.#spends.slices.toReversed()) {
      if (told >= count) break
      last.push([Math.max(0, Math.floor(now - until)), tokens])
      told += tokens
    }
    return last.toReversed()
  }

  #noteSpent(count: number, at: number): void {
    this.#spent += count
    this.#spends.forget(at - this.#historyMs)
    this.#spends.add(at, count)
  }

  /** A process that was stopped finds its lease over before it can spend anything. */
  #endIfOver(): void {
    if (this.#hasEnded || !this.#hasEndedFor(0)) return
    this.#hasEnded = true
    this.#number++
    this.#lapsed = 0
    for (const counts of [this.#free, this.#taken]) {
      this.#lapsed += counts.orders + counts.otps + counts.reads
      counts.orders = counts.otps = counts.reads = 0
    }
    if (this.#lapsed > 0) this.#noteSpent(this.#lapsed, Math.min(this.#clock.now(), this.#endsAt))
  }

  #hasEndedFor(ms: number): boolean {
    return this.#clock.now() >= this.#endsAt + ms || this.#clock.timeOfDay() >= this.#endsAtTimeOfDay + ms
  }
}
