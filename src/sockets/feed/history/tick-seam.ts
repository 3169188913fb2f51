import type { Point, Tail } from './points.ts'
import type { Seam, Streamed } from './seam.ts'

/** The seam of a history of ticks. Several ticks may have its last epoch, and equal prices. */
export class TickSeam implements Seam {
  readonly #tail: Tail
  readonly #isComplete: boolean
  #first: number | undefined
  /** The prices that the stream has sent of the last epoch. */
  readonly #values: string[]
  /** How many of these the history contains, if that is known. */
  readonly #contained: number | undefined
  /** It contains at least this many: those that the stream began with and, if the stream lacks none, as many as the history shows. */
  readonly #least: number
  /** It contains no more than this many: if it is whole, it shows all ticks of the epoch up to its end. */
  readonly #most: number
  #isOver = false

  constructor(tail: Tail, { first, values, begun, isComplete }: Streamed) {
    this.#tail = tail
    this.#isComplete = isComplete
    this.#first = first
    this.#values = [...values]
    this.#contained = isComplete && tail.isWhole ? tail.values.length : undefined
    this.#least = Math.max(begun, isComplete ? tail.values.length : 1)
    this.#most = tail.isWhole ? tail.values.length : Infinity
  }

  get epoch(): number {
    return this.#tail.epoch
  }

  get first(): number | undefined {
    return this.#first
  }

  get isOver(): boolean {
    return this.#isOver
  }

  containedSoFar(): number | undefined {
    if (this.#contained !== undefined) return this.#contained <= this.#values.length ? this.#contained : undefined
    for (let count = this.#values.length; count > 0; count--) {
      if (this.#isEnd(count)) return count
    }
    return undefined
  }

  isLater(point: Point | undefined, sequence: number): boolean {
    if (point === undefined) return true
    if (point.epoch < this.epoch) return false
    if (this.isPassedBy(point)) return true
    this.#first ??= sequence
    this.#values.push(point.value)
    this.#isOver =
      this.#contained === undefined ? this.#isEnd(this.#values.length) : this.#values.length >= this.#contained
    return false
  }

  isPassedBy(point: Point | undefined): boolean {
    return point !== undefined && point.epoch > this.epoch
  }

  /** If the stream lacks the beginning of the epoch, everything that it has of it may be later. */
  mayBeLater(): number {
    return this.#isComplete ? -1 : 0
  }

  /** Whether the history can end with the last of this many values. */
  #isEnd(count: number): boolean {
    return count >= this.#least && count <= this.#most && endAlike(this.#values.slice(0, count), this.#tail.values)
  }
}

/** Whether one list is the end of the other. */
function endAlike(left: readonly string[], right: readonly string[]): boolean {
  const length = Math.min(left.length, right.length)
  return left.slice(-length).every((value, index) => value === right.slice(-length)[index])
}
