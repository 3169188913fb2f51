import type { UpstreamMessage } from '../wire/index.ts'
import type { Point, Tail } from './points.ts'

/** Messages that are kept beyond those that are needed: enough for a history that is a little behind upstream's streams. */
const KEPT = 64

interface Recent {
  /** The number of the message in its stream. */
  readonly at: number
  readonly point: Point | undefined
  /** Undefined for a point of the history that the stream began with, which is never sent. */
  readonly message: UpstreamMessage | undefined
}

/** The recent messages of a `ticks_history` stream, so that a history that was fetched separately can be continued. */
export class RecentMessages {
  readonly all: Recent[] = []
  /** The number of the next message. */
  end = 0
  /** Whether the first one is the first of its epoch. */
  #isWhole = false

  /** The number of the oldest message that is still here. */
  get start(): number {
    return this.all[0]?.at ?? this.end
  }

  /** Takes over the end of the history that the stream has begun with. */
  begin(tail: Tail | undefined): void {
    if (tail === undefined || this.all.length > 0) return
    this.#isWhole = tail.isWhole
    for (const value of tail.values) this.#add({ epoch: tail.epoch, value }, undefined)
  }

  /** @param needed the number of the oldest message that a history may still need; Infinity for none */
  add(point: Point | undefined, message: UpstreamMessage, needed: number): void {
    this.#add(point, message)
    const oldest = Math.min(needed, this.end) - KEPT
    while (this.start < oldest) {
      this.all.shift()
      this.#isWhole = false
    }
  }

  /** Whether nothing of this epoch is missing here. */
  isCompleteAt(epoch: number): boolean {
    const [first] = this.all
    if (first?.point === undefined) return false
    return first.point.epoch < epoch || (first.point.epoch === epoch && this.#isWhole)
  }

  #add(point: Point | undefined, message: UpstreamMessage | undefined): void {
    this.all.push({ at: this.end++, point, message })
  }
}
