import type { History } from './history.ts'

/** A promise that was not kept. */
export interface Violation {
  /** When it was seen, around which the timeline is written (ms). */
  readonly at: number
  /** What was seen, in a sentence. */
  readonly seen: string
}

/** What a history says about a promise. */
interface Verdict {
  /** When each of the things happened that were judged: what never happened was never put to the test. */
  readonly judged: readonly number[]
  readonly violations: readonly Violation[]
}

/** What the product promises. Each is a file of its own in `promises/`, and is listed in `promises/all.ts`. */
export interface ProductPromise {
  readonly name: string
  /** What is promised, in a sentence. */
  readonly sentence: string
  /** Whether it is about time, so that a run in which processes had to wait for a processor says nothing about it. */
  readonly isTimed: boolean
  /** All that a history has against it. It is asked while a run goes on, and at its end. */
  readonly check: (history: History) => Verdict
}
