import { isWider, type Tail } from './points.ts'

/**
 * States of a candle with the range of the history but another close may be older or later: no rule decides. Up to this many are
 * held back. An upstream that streams every state reaches that of the history long before; one that leaves states out may never
 * reach it.
 */
const MAX_UNDECIDED = 64

/** What a stream has of the last epoch of a history. */
export interface Streamed {
  /** The values of the epoch so far, in order. */
  readonly values: readonly string[]
  /** How many of these come from the history that the stream began with. */
  readonly begun: number
  /** How many of these came before the history arrived. */
  readonly known: number
  /** Whether no earlier value of the epoch is missing. */
  readonly isComplete: boolean
  /** Whether the stream has gone on to a later epoch. */
  readonly isPassed: boolean
}

/**
 * Where a history ends among the values that a stream has of its last epoch. While the history is ahead of the stream, that is
 * not known, and this is asked again after each message.
 */
export type Seam =
  /** The index of the first value that is later than the history; the number of values if none is. */
  | { readonly later: number; readonly undecided?: undefined }
  /** The index of the first value that may turn out to be later; the number of values if none may. */
  | { readonly later?: undefined; readonly undecided: number }

/** The seam of a history of ticks. Several ticks may have its last epoch, and equal prices. */
export function tickSeam(tail: Tail, { values, begun, isComplete, isPassed }: Streamed): Seam {
  const shown = tail.values.length
  // If neither lacks the beginning of the epoch, counting is enough.
  if (isComplete && tail.isWhole) {
    if (shown <= values.length) return { later: shown }
  } else {
    // The history contains what the stream began with. If the stream lacks none of the epoch, it contains all that it shows.
    const fewest = Math.max(begun, isComplete ? shown : 1)
    // If the history lacks none of the epoch, it shows all that it contains.
    const most = Math.min(tail.isWhole ? shown : Infinity, values.length)
    for (let contained = most; contained >= fewest; contained--) {
      if (endAlike(values.slice(0, contained), tail.values)) return { later: contained }
    }
  }
  if (!isPassed) return { undecided: 0 }
  // If the stream lacks the beginning of the epoch, everything that it has of it may be later.
  return { later: isComplete ? values.length : 0 }
}

/** The seam of a history of candles. The last candle is open, and the stream sends it whole with each change. */
export function candleSeam(tail: Tail, { values, known, isPassed }: Streamed): Seam {
  const shown = tail.values.at(-1) ?? ''
  const equal = values.lastIndexOf(shown)
  if (equal >= 0) return { later: equal + 1 }
  const wider = values.findIndex((value) => isWider(value, shown))
  if (wider >= 0) return { later: wider }
  const firstOpen = values.findLastIndex((value) => isWider(shown, value)) + 1
  // No state is surely later, but the last one may be: the stream has closed the candle with it.
  if (isPassed) return { later: Math.max(firstOpen, values.length - 1) }
  const undecided = Math.max(firstOpen, known)
  return values.length - undecided > MAX_UNDECIDED ? { later: undecided + MAX_UNDECIDED } : { undecided }
}

/** Whether one list is the end of the other. */
function endAlike(left: readonly string[], right: readonly string[]): boolean {
  const length = Math.min(left.length, right.length)
  return left.slice(-length).every((value, index) => value === right.slice(-length)[index])
}
