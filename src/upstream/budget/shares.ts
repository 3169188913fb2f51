import { BUDGET_CLASSES, byClass, type BudgetClass } from '../../config/upstream-budget.ts'
import type { LedgerWindow } from '../../store/ledger/ledger.ts'
import type { Clock } from './clock.ts'
import type { Leaseholder } from './leaseholder.ts'
import type { BudgetTerms } from './terms.ts'
import { PresentSubjects, SubjectCalls, type Portion, type Stock } from './subject-calls.ts'

/** The subjects that use more than an equal part may together have this part of the tokens of the shortest window. */
const GREEDY_PART = 1 / 2
/** They have half of that until calls have been seen for this part of the shortest window: until then the others' rate is not known. */
const LEARNING_PART = 1 / 4
/**
 * The part of each ceiling that is left to subjects that have had no more than an equal part. In longer windows it is larger,
 * since the tokens of processes that crash are lost for as long.
 */
const RESERVED_PART = 1 / 10
const RESERVED_PART_OF_LONGER = 1 / 5
/** For how long a subject counts as present: the shortest window, over which calls are compared, within limits. */
const MIN_PRESENT_MS = 10_000
const MAX_PRESENT_MS = 60_000

/** Shares the tokens of each class among the subjects that ask this process. */
export class Shares {
  readonly #clock: Clock
  readonly #windows: readonly LedgerWindow[]
  /** Each can count on its part of the tokens left. */
  readonly #instances: number
  readonly #tokens: Leaseholder
  readonly #presentMs: number
  readonly #startedAt: number
  readonly #present: Readonly<Record<BudgetClass, PresentSubjects>>
  /** For each window. */
  readonly #calls: Readonly<Record<BudgetClass, readonly SubjectCalls[]>>

  constructor(clock: Clock, { windows, instances }: BudgetTerms, tokens: Leaseholder) {
    this.#clock = clock
    this.#windows = windows
    this.#instances = instances
    this.#tokens = tokens
    const presentMs = Math.min(MAX_PRESENT_MS, Math.max(MIN_PRESENT_MS, windows[0]?.windowMs ?? 0))
    this.#startedAt = clock.now()
    this.#presentMs = presentMs
    this.#present = byClass(() => new PresentSubjects(clock, presentMs))
    this.#calls = byClass(() => windows.map(({ windowMs }) => new SubjectCalls(clock, windowMs)))
  }

  /** A subject asks for a call. A call without a name belongs to no subject. */
  noteAsked(budgetClass: BudgetClass, subject: string): void {
    if (subject !== '') this.#present[budgetClass].note(subject)
  }

  noteTaken(budgetClass: BudgetClass, subject: string): void {
    for (const calls of this.#calls[budgetClass]) calls.noteTaken(subject)
  }

  /** The portion of the next call of this subject: in the window in which it has the least. */
  portion(budgetClass: BudgetClass, subject: string): Portion {
    let worst: Portion = 'equal'
    if (!this.#hasOthersThan(subject)) return worst
    for (const [at, calls] of this.#calls[budgetClass].entries()) {
      const portion = calls.portion(subject, this.#stock(budgetClass, at))
      if (portion === 'none') return portion
      if (portion === 'more') worst = portion
    }
    return worst
  }

  /** How many calls this subject has left of its equal part. */
  equalLeft(budgetClass: BudgetClass, subject: string): number {
    if (!this.#hasOthersThan(subject)) return Infinity
    return Math.min(
      ...this.#calls[budgetClass].map((calls, at) => calls.equalLeft(subject, this.#stock(budgetClass, at))),
    )
  }

  /** How many calls beyond equal parts there may be. */
  moreLeft(budgetClass: BudgetClass): number {
    return Math.min(...this.#calls[budgetClass].map((calls, at) => calls.moreLeft(this.#stock(budgetClass, at))))
  }

  /** A subject that has asked for calls of any class counts: what it will ask for next is not known. */
  #hasOthersThan(subject: string): boolean {
    // A process that joins others assumes that their users will ask it, too.
    if (this.#hasJoinedWithin(this.#presentMs)) return true
    return BUDGET_CLASSES.some((each) => this.#present[each].hasOthersThan(subject))
  }

  /** Whether this process started beside busy ones, less than this time ago. */
  #hasJoinedWithin(ms: number): boolean {
    return this.#tokens.wereInUse && this.#clock.now() < this.#startedAt + ms
  }

  #stock(budgetClass: BudgetClass, at: number): Stock {
    const { windowMs, ceilings } = this.#windows[at] as LedgerWindow
    const subjects = this.#present[budgetClass].count
    const calls = this.#calls[budgetClass][at]?.count ?? 0
    const free = this.#tokens.free(budgetClass)
    const used = this.#tokens.recentlyUsed?.[at] ?? ceilings.orders
    const part = this.#partOfLeft(at, used)
    // As in the ledger, tokens that are held ready for orders are no reason to refuse others.
    const ready = budgetClass === 'orders' ? 0 : this.#tokens.free('orders')
    const left = Math.min(ceilings[budgetClass] + ready, ceilings.orders) - used
    const reserved = ceilings[budgetClass] * (at === 0 ? RESERVED_PART : RESERVED_PART_OF_LONGER)
    // A process that joined others does not know the calls before it started, and would hand the reserve out in equal parts.
    const isNew = this.#hasJoinedWithin(windowMs)
    const tokens = calls + free + Math.max(0, left - (isNew ? reserved : 0)) * part
    const most = tokens * this.#greedyPart
    if (this.#tokens.isCutOff) {
      const atHand = calls + free
      const spare = free - Math.max(1, atHand * RESERVED_PART)
      return { tokens, spare, part: 1, subjects, most, greedy: atHand * GREEDY_PART }
    }
    const spare = left - reserved
    // A subject that was alone may have used most of a longer window. The rest need not lie idle until that window has passed.
    return { tokens, spare, part, subjects, most, greedy: at === 0 ? most : Infinity }
  }

  /** How fast others' calls come is not known before some have been seen. */
  get #greedyPart(): number {
    const [{ windowMs }] = this.#windows as [LedgerWindow]
    const seenMs = Math.max(...BUDGET_CLASSES.map((each) => this.#calls[each][0]?.seenMs ?? 0))
    return (GREEDY_PART * (1 + Math.min(1, seenMs / (windowMs * LEARNING_PART)))) / 2
  }

  /** The more of the tokens in use this process has, the more of the tokens left it can count on. */
  #partOfLeft(at: number, used: number): number {
    let got = 0
    for (const each of BUDGET_CLASSES) got += (this.#calls[each][at]?.count ?? 0) + this.#tokens.free(each)
    return Math.max(1 / this.#instances, Math.min(1, got / Math.max(1, used)))
  }
}
