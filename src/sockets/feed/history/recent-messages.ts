import type { UpstreamMessage } from '../wire/index.ts'
import type { Point, Tail } from './points.ts'
import { candleSeam, tickSeam } from './seam.ts'

/** Messages that are kept beyond those that are needed: enough for a history that is a little behind upstream's streams. */
const KEPT = 64

interface Recent {
  readonly sequence: number
  readonly point: Point | undefined
  /** Undefined for a point of the history that the stream began with, which is never sent. */
  readonly message: UpstreamMessage | undefined
}

/** A history, as far as it matters for where it goes on. */
export interface HistoryEnd {
  /** Undefined for an empty history. */
  readonly tail: Tail | undefined
  readonly isCandles: boolean
  /** Whether a history up to now was asked for. If it ends before everything that is known, it is behind the stream. */
  readonly isLatest: boolean
  /** The number of the stream's next message when the history was requested. */
  readonly since: number
  /** The number of the stream's next message when the history arrived. */
  readonly arrived: number
}

/** How a history goes on: with the message of a number or, while it is ahead of the stream, in a way that is not known yet. */
export type Continuation =
  | { readonly next: number; readonly needed?: undefined }
  /** The number of the oldest message that may still follow; Infinity while there is none. */
  | { readonly next?: undefined; readonly needed: number }

/** The recent messages of a `ticks_history` stream, so that a history that was fetched separately can be continued. */
export class RecentMessages {
  #entries: Recent[] = []
  #nextSequence = 0
  /** Whether the first entry is the first of its epoch. */
  #isWhole = false

  /** The number of the next message. */
  get nextSequence(): number {
    return this.#nextSequence
  }

  /** Takes over the end of the history that the stream has begun with. */
  begin(tail: Tail | undefined): void {
    if (tail === undefined || this.#entries.length > 0) return
    this.#isWhole = tail.isWhole
    for (const value of tail.values) this.#add({ epoch: tail.epoch, value }, undefined)
  }

  /** @param needed the number of the oldest message that a history may still need; Infinity for none */
  add(point: Point | undefined, message: UpstreamMessage, needed: number): void {
    this.#add(point, message)
    const oldest = Math.min(needed, this.#nextSequence) - KEPT
    while ((this.#entries[0]?.sequence ?? oldest) < oldest) {
      this.#entries.shift()
      this.#isWhole = false
    }
  }

  /** Whether the messages from this number on are all there. */
  covers(sequence: number): boolean {
    return (this.#entries[0]?.sequence ?? this.#nextSequence) <= sequence
  }

  /** The messages from this number on. */
  from(sequence: number): UpstreamMessage[] {
    return this.#entries.flatMap((entry) => (entry.sequence < sequence ? [] : (entry.message ?? [])))
  }

  /**
   * Where a history goes on, so that each later message follows once, and none that it contains. While it is ahead of the stream,
   * this is to be asked again after each message.
   */
  after({ tail, isCandles, isLatest, since, arrived }: HistoryEnd): Continuation {
    if (tail === undefined) return { next: since }
    const newest = this.#entries.at(-1)
    // A message without a point has no place in any history.
    if (newest !== undefined && newest.point === undefined && newest.sequence >= arrived)
      return { next: newest.sequence }
    if (!this.#reaches(tail.epoch)) {
      return { next: isLatest ? (this.#entries[0]?.sequence ?? since) : since }
    }
    const { epoch } = tail
    const ofEpoch = this.#entries.filter(({ point }) => point?.epoch === epoch)
    const passed = this.#entries.find(({ point }) => point !== undefined && point.epoch > epoch)
    const { later, undecided } = (isCandles ? candleSeam : tickSeam)(tail, {
      values: ofEpoch.map(({ point }) => point?.value ?? ''),
      begun: ofEpoch.filter(({ message }) => message === undefined).length,
      known: ofEpoch.filter(({ sequence }) => sequence < arrived).length,
      isComplete: this.#isCompleteAt(epoch),
      isPassed: passed !== undefined,
    })
    if (later === undefined) return { needed: ofEpoch[undecided]?.sequence ?? Infinity }
    const last = ofEpoch[later - 1]
    return { next: last === undefined ? ((ofEpoch[0] ?? passed)?.sequence ?? this.#nextSequence) : last.sequence + 1 }
  }

  /** Whether a history that ends with this epoch can be continued. If not, everything here is later. */
  #reaches(epoch: number): boolean {
    return this.#entries.length === 0 || this.#entries.some(({ point }) => point !== undefined && point.epoch <= epoch)
  }

  /** Whether nothing of this epoch is missing here. */
  #isCompleteAt(epoch: number): boolean {
    const [first] = this.#entries
    if (first?.point === undefined) return false
    return first.point.epoch < epoch || (first.point.epoch === epoch && this.#isWhole)
  }

  #add(point: Point | undefined, message: UpstreamMessage | undefined): void {
    this.#entries.push({ sequence: this.#nextSequence++, point, message })
  }
}
