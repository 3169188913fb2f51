import { SlidingCount, type Slice } from '../../time/sliding-count.ts'
import type { Clock } from './clock.ts'

/** The calls within the window are forgotten in so many steps. */
const SLICES = 60
/** How many standard deviations of a number of calls are put down to chance. */
const CHANCE = 2
/** Likewise for the calls that others have yet to make. It is higher, since each one refused may be an order: see budget/shares. */
const CHANCE_OF_OTHERS = 4
/** An equal part is this many calls at least, however few tokens there are. */
const LEAST_PART = 2
/** The rate of calls is measured over this part of the window at least. */
const LEAST_SEEN_PART = 1 / 20
/** With so many, an equal part is hardly ever more than one call. More of them would only cost memory. */
const MAX_PRESENT = 1024

/** The tokens that subjects share at present. */
export interface Stock {
  /** The tokens, used and unused, that this process can count on within the window. */
  readonly tokens: number
  /** How many of the tokens left may be used beyond equal parts, so that some remain for subjects that have had less. */
  readonly spare: number
  /** The part of the calls of all processes that this one makes. */
  readonly part: number
  /** How many subjects there are that ask for them. */
  readonly subjects: number
  /** The most that an equal part may be, however few subjects are present. */
  readonly most: number
  /** The most that subjects with more than an equal part may have together. */
  readonly greedy: number
}

/** Whether a call is within an equal part of the tokens, or beyond it but allowed, or one too many. */
export type Portion = 'equal' | 'more' | 'none'

/**
 * Counts the calls of one class by subject within a window, and tells whether a subject may make one more: none uses up the
 * tokens that others will need. A subject that is alone may have all of them.
 */
export class SubjectCalls {
  readonly #clock: Clock
  readonly #windowMs: number
  readonly #calls = new Map<string, number>()
  readonly #taken: SlidingCount
  /** The same calls by slice. */
  readonly #bySlice = new Map<Slice, Map<string, number>>()
  #count = 0

  constructor(clock: Clock, windowMs: number) {
    this.#clock = clock
    this.#windowMs = windowMs
    this.#taken = new SlidingCount(windowMs / SLICES)
  }

  /** The calls of all subjects within the window. */
  get count(): number {
    this.#forget()
    return this.#count
  }

  /** How long ago the first of these calls was made (ms); 0 without any. */
  get seenMs(): number {
    const now = this.#clock.now()
    return now - (this.#taken.slices[0]?.from ?? now)
  }

  noteTaken(subject: string): void {
    this.#forget()
    const slice = this.#taken.add(this.#clock.now())
    const ofSlice = this.#bySlice.get(slice) ?? new Map<string, number>()
    this.#bySlice.set(slice, ofSlice)
    for (const calls of [ofSlice, this.#calls]) calls.set(subject, (calls.get(subject) ?? 0) + 1)
    this.#count++
  }

  /** The portion of the next call of this subject. */
  portion(subject: string, stock: Stock): Portion {
    if (this.equalLeft(subject, stock) >= 1) return 'equal'
    // Most are refused here, without counting the others.
    if (stock.spare < 1 || (this.#calls.get(subject) ?? 0) >= stock.greedy) return 'none'
    return this.moreLeft(stock, subject) >= 1 ? 'more' : 'none'
  }

  /** How many calls this subject has left of its equal part, which is one at least. */
  equalLeft(subject: string, stock: Stock): number {
    this.#forget()
    return equalPart(stock) - (this.#calls.get(subject) ?? 0)
  }

  /** How many more calls beyond equal parts there may be. @param next the subject that would make them; all of its calls count */
  moreLeft(stock: Stock, next?: string): number {
    this.#forget()
    const equal = equalPart(stock)
    let greedy = 0
    for (const [subject, calls] of this.#calls) if (calls > equal || subject === next) greedy += calls
    // The others will ask for more until the window is over, at the rate seen so far. Tokens that they have had come free then.
    const had = this.#count - greedy
    const seenMs = Math.max(this.seenMs, this.#windowMs * LEAST_SEEN_PART)
    const toCome = Math.max(0, this.#windowMs / seenMs - 1) * (had + CHANCE_OF_OTHERS * Math.sqrt(had))
    const spare = stock.spare - toCome / stock.part
    return Math.max(0, Math.floor(Math.min(spare, stock.greedy - greedy)))
  }

  #forget(): void {
    for (const slice of this.#taken.forget(this.#clock.now() - this.#windowMs)) {
      for (const [subject, count] of this.#bySlice.get(slice) ?? []) {
        const left = (this.#calls.get(subject) ?? 0) - count
        if (left > 0) this.#calls.set(subject, left)
        else this.#calls.delete(subject)
        this.#count -= count
      }
      this.#bySlice.delete(slice)
    }
  }
}

/** The subjects that have asked this process for a call of one class a short time ago, whether they got it or not. */
export class PresentSubjects {
  readonly #clock: Clock
  readonly #presentMs: number
  /** When each asked last, the longest ago first. */
  readonly #askedAt = new Map<string, number>()

  /** @param presentMs for how long after its last call a subject counts as present */
  constructor(clock: Clock, presentMs: number) {
    this.#clock = clock
    this.#presentMs = presentMs
  }

  /** How many there are. */
  get count(): number {
    const since = this.#clock.now() - this.#presentMs
    for (const [subject, at] of this.#askedAt) {
      if (at >= since && this.#askedAt.size <= MAX_PRESENT) break
      this.#askedAt.delete(subject)
    }
    return this.#askedAt.size
  }

  /** Whether there are others than this one. */
  hasOthersThan(subject: string): boolean {
    const { count } = this
    return count > 1 || (count === 1 && !this.#askedAt.has(subject))
  }

  note(subject: string): void {
    // Removed first, so that it goes to the end.
    this.#askedAt.delete(subject)
    this.#askedAt.set(subject, this.#clock.now())
    if (this.#askedAt.size > MAX_PRESENT) void this.count
  }
}

/** An equal part of the tokens, with room for chance, since this process sees only some of the calls of a subject. */
function equalPart({ tokens, subjects, most }: Stock): number {
  const equal = tokens / Math.max(1, subjects)
  return Math.max(LEAST_PART, Math.floor(Math.min(most, equal + CHANCE * Math.sqrt(equal))))
}
