import type { Tail } from './points.ts'

/**
 * States of a candle with the range of the history but another close may be older or later: no rule decides. Up to this many are
 * held back. An upstream that streams every state reaches that of the history long before; one that leaves states out may never
 * reach it.
 */
const MAX_UNDECIDED = 64

/** What a stream has of the last epoch of a history. */
interface Streamed {
  /** The values of the epoch so far, in order. */
  readonly values: readonly string[]
  /** How many of these come from the history that the stream began with. */
  readonly begun: number
  /** How many of these came before the history arrived. */
  readonly before: number
  /** Whether no earlier value of the epoch is missing. */
  readonly isComplete: boolean
  /** Whether the stream has gone on to a later epoch. */
  readonly isPassed: boolean
}

/**
 * Where a history ends among the values that a stream has of its last epoch: the index of the first value that is later, or the
 * number of values if none is. While the history is ahead of the stream, that is not known, and the value at this index and those
 * after it may turn out to be later. This is asked again after each message then.
 */
interface Seam {
  readonly at: number
  readonly isKnown: boolean
}

/** Finds the seam of a history of ticks or of candles. */
export function seamOf(tail: Tail, streamed: Streamed, isCandles: boolean): Seam {
  return isCandles ? candleSeam(tail, streamed) : tickSeam(tail, streamed)
}

/** Several ticks may have the last epoch of a history, and equal prices. */
function tickSeam(tail: Tail, { values, begun, isComplete, isPassed }: Streamed): Seam {
  const shown = tail.values.length
  // If neither lacks the beginning of the epoch, counting is enough.
  if (isComplete && tail.isWhole) {
    if (shown <= values.length) return known(shown)
  } else {
    // The history contains what the stream began with. If the stream lacks none of the epoch, it contains all that it shows.
    const fewest = Math.max(begun, isComplete ? shown : 1)
    // If the history lacks none of the epoch, it shows all that it contains.
    const most = Math.min(tail.isWhole ? shown : Infinity, values.length)
    for (let contained = most; contained >= fewest; contained--) {
      if (endAlike(values.slice(0, contained), tail.values)) return known(contained)
    }
  }
  if (!isPassed) return { at: 0, isKnown: false }
  // If the stream lacks the beginning of the epoch, everything that it has of it may be later.
  return known(isComplete ? values.length : 0)
}

/** The last candle of a history is open, and the stream sends it whole with each change. */
function candleSeam(tail: Tail, { values, before, isPassed }: Streamed): Seam {
  const shown = tail.values.at(-1) ?? ''
  const equal = values.lastIndexOf(shown)
  if (equal >= 0) return known(equal + 1)
  const wider = values.findIndex((value) => isWider(value, shown))
  if (wider >= 0) return known(wider)
  const firstOpen = values.findLastIndex((value) => isWider(shown, value)) + 1
  // No state is surely later, but the last one may be: the stream has closed the candle with it.
  if (isPassed) return known(Math.max(firstOpen, values.length - 1))
  const undecided = Math.max(firstOpen, before)
  return values.length - undecided > MAX_UNDECIDED
    ? known(undecided + MAX_UNDECIDED)
    : { at: undecided, isKnown: false }
}

/** Whether one list is the end of the other. */
function endAlike(left: readonly string[], right: readonly string[]): boolean {
  const length = Math.min(left.length, right.length)
  return left.slice(-length).every((value, index) => value === right.slice(-length)[index])
}

function known(at: number): Seam {
  return { at, isKnown: true }
}

/**
 * Whether a candle shows more trading than an earlier state of it. While a candle is open, its high only rises and its low only
 * falls, so of two states with different ranges the wider one is later.
 */
function isWider(value: string, than: string): boolean {
  const [, high = 0, low = 0] = value.split(' ').map(Number)
  const [, otherHigh = 0, otherLow = 0] = than.split(' ').map(Number)
  return high > otherHigh || low < otherLow
}
