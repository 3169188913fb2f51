import type { Point, Tail } from './points.ts'

/** So many messages of a candle may be older than the history that shows it. Each has the whole candle, so no more are held back. */
const MAX_OLDER_CANDLES = 8

/** What a stream has of the last epoch of a history. */
interface Streamed {
  /** The number of its first message, if it has any. */
  readonly first: number | undefined
  /** Its values so far, in order. */
  readonly values: readonly string[]
  /** How many of these were in the history that the stream has begun with. */
  readonly begun: number
  /** Whether none is missing before them. */
  readonly isComplete: boolean
}

/**
 * Where a history ends and its stream goes on, if the history is ahead: messages will still come that it contains. Several may
 * have its last epoch.
 */
export class Seam {
  readonly isCandles: boolean
  /** Whether the stream has all messages of the last epoch. */
  readonly isComplete: boolean
  readonly #tail: Tail
  #first: number | undefined
  /** The values that the stream has sent of the last epoch. */
  readonly #values: string[]
  /** How many of these the history contains, if that is known. */
  readonly #contained: number | undefined
  /** It contains at least so many: what the stream has begun with and, if nothing is missing, as many as it shows itself. */
  readonly #least: number
  /** It contains no more than these: all of the epoch that there were. */
  readonly #most: number
  readonly #mostValues: number
  #isOver = false

  constructor(tail: Tail, { first, values, begun, isComplete }: Streamed, isCandles: boolean) {
    this.isCandles = isCandles
    this.isComplete = isComplete
    this.#tail = tail
    this.#first = first
    this.#values = [...values]
    this.#contained = isComplete && tail.isWhole && !isCandles ? tail.values.length : undefined
    this.#least = Math.max(begun, isComplete ? tail.values.length : 1)
    this.#most = tail.isWhole && !isCandles ? tail.values.length : Infinity
    this.#mostValues = isCandles ? values.length + MAX_OLDER_CANDLES : Infinity
  }

  /** The last epoch of the history. */
  get epoch(): number {
    return this.#tail.epoch
  }

  /** The number of the stream's first message of that epoch. Undefined if it has none. */
  get first(): number | undefined {
    return this.#first
  }

  /** Whether all further messages are later than the history. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** How many of the values so far the history contains. Undefined when it contains more than these. */
  containedSoFar(): number | undefined {
    if (this.#contained !== undefined) return this.#contained <= this.#values.length ? this.#contained : undefined
    for (let count = this.#values.length; count > 0; count--) {
      if (this.#isEnd(count)) return count
    }
    return undefined
  }

  /**
   * Whether the next message of the stream is later than the history.
   * @param sequence the number of the message
   */
  isLater(point: Point | undefined, sequence: number): boolean {
    if (point === undefined) return true
    const { epoch, value } = point
    if (epoch < this.#tail.epoch) return false
    if (epoch > this.#tail.epoch || this.#values.length >= this.#mostValues) {
      this.#isOver = true
      return true
    }
    this.#first ??= sequence
    this.#values.push(value)
    this.#isOver =
      this.#contained === undefined ? this.#isEnd(this.#values.length) : this.#values.length >= this.#contained
    return false
  }

  /** Whether the history can end with the last of so many values. */
  #isEnd(count: number): boolean {
    return count >= this.#least && count <= this.#most && endAlike(this.#values.slice(0, count), this.#tail.values)
  }
}

/** Whether one list is the end of the other. */
function endAlike(left: readonly string[], right: readonly string[]): boolean {
  const length = Math.min(left.length, right.length)
  return length > 0 && left.slice(-length).every((value, index) => value === right.slice(-length)[index])
}
