import type { UpstreamMessage } from '../wire/index.ts'
import type { Point, Tail } from './points.ts'
import { CandleSeam } from './candle-seam.ts'
import type { Seam, Streamed } from './seam.ts'
import { TickSeam } from './tick-seam.ts'

/** Messages that are kept beyond those that are needed: enough for a history that is a little behind upstream's streams. */
const KEPT = 64

interface Recent {
  readonly sequence: number
  readonly point: Point | undefined
  /** Undefined for a point of the history that the stream began with, which is never sent. */
  readonly message: UpstreamMessage | undefined
}

/** How a history goes on: with the message of this number or, if it is ahead of the stream, with one that is still to come. */
type Continuation =
  | { readonly next: number; readonly seam?: undefined }
  | { readonly next?: undefined; readonly seam: Seam }

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
   * Where a history that has just arrived goes on, so that each later message follows once, and none that it contains.
   * @param since the number of the next message when the history was requested
   * @param isLatest whether a history up to now was asked for. If it ends before everything here, it is behind the stream
   */
  after(tail: Tail | undefined, since: number, isCandles: boolean, isLatest = true): Continuation {
    if (tail === undefined) return { next: since }
    if (!this.#reaches(tail.epoch)) {
      return { next: isLatest ? (this.#entries[0]?.sequence ?? since) : since }
    }
    const { epoch } = tail
    const ofEpoch = this.#entries.filter(({ point }) => point?.epoch === epoch)
    const streamed: Streamed = {
      first: ofEpoch[0]?.sequence,
      values: ofEpoch.map(({ point }) => point?.value ?? ''),
      begun: ofEpoch.filter(({ message }) => message === undefined).length,
      isComplete: this.#isCompleteAt(epoch),
    }
    const seam = isCandles ? new CandleSeam(tail, streamed) : new TickSeam(tail, streamed)
    const last = ofEpoch[(seam.containedSoFar() ?? 0) - 1]
    if (last !== undefined) return { next: last.sequence + 1 }
    const beyond = this.#entries.find(({ point }) => seam.isPassedBy(point))
    if (beyond === undefined) return { seam }
    return { next: (this.#possiblyLater(seam) ?? beyond).sequence }
  }

  /** Where a history goes on once its seam has found the next message, with this point, to be later. */
  afterSeam(seam: Seam, point: Point | undefined): number {
    const isPassed = point !== undefined && point.epoch > seam.epoch
    return (isPassed ? this.#possiblyLater(seam)?.sequence : undefined) ?? this.#nextSequence
  }

  /** The first message that is sent, if any, when the stream has passed the end of a history without sending that value. */
  #possiblyLater(seam: Seam): Recent | undefined {
    const ofEpoch = this.#entries.filter(({ point }) => point?.epoch === seam.epoch)
    return ofEpoch[seam.mayBeLater(ofEpoch.map(({ point }) => point))]
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
