import { isWider, type Point, type Tail } from './points.ts'
import type { Seam, Streamed } from './seam.ts'

/**
 * States of a candle with the range of the history but another close may be older or later: nobody can tell. Up to this many are
 * held back. An upstream that streams every state reaches that of the history long before; one that leaves states out may never
 * reach it.
 */
const MAX_UNDECIDED = 64

/** The seam of a history of candles. The last candle is open, and the stream sends it whole with each change. */
export class CandleSeam implements Seam {
  readonly epoch: number
  /** Only the last state may still have to be sent, and the latest messages are kept in any case. */
  readonly first = undefined
  /** The last candle as the history shows it. */
  readonly #shown: string
  readonly #values: readonly string[]
  #undecided = 0
  #isOver = false

  constructor({ epoch, values }: Tail, streamed: Streamed) {
    this.epoch = epoch
    this.#shown = values.at(-1) ?? ''
    this.#values = streamed.values
  }

  get isOver(): boolean {
    return this.#isOver
  }

  containedSoFar(): number | undefined {
    const index = this.#values.lastIndexOf(this.#shown)
    return index < 0 ? undefined : index + 1
  }

  isLater(point: Point | undefined): boolean {
    if (point === undefined) return true
    if (point.epoch < this.epoch) return false
    if (this.isPassedBy(point) || this.#undecided >= MAX_UNDECIDED) return true
    this.#isOver = point.value === this.#shown
    if (!isWider(this.#shown, point.value)) this.#undecided++
    return false
  }

  isPassedBy(point: Point | undefined): boolean {
    if (point === undefined || point.epoch < this.epoch) return false
    return point.epoch > this.epoch || isWider(point.value, this.#shown)
  }

  /** Even if no state is certainly later, the last one may be: the stream has closed the candle with it. */
  mayBeLater(points: readonly (Point | undefined)[]): number {
    const wider = points.findIndex((point) => this.isPassedBy(point))
    if (wider >= 0) return wider
    const isOlder = isWider(this.#shown, points.at(-1)?.value ?? '')
    return isOlder ? -1 : points.length - 1
  }
}
