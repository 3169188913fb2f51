import type { UpstreamMessage } from './dissect.ts'
import type { Point, Tail } from './points.ts'
import { Seam } from './seam.ts'

/** Messages that are kept in any case: enough for a history that upstream answers a little behind its streams. */
const KEPT = 64

interface Recent {
  readonly sequence: number
  readonly point: Point | undefined
  /** Undefined for what a history has shown, which is never sent. */
  readonly message: UpstreamMessage | undefined
}

/** How a history goes on. */
interface Continuation {
  readonly later: readonly UpstreamMessage[]
  readonly seam?: Seam
}

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

  /** Begins with the history that upstream's own stream has begun with. */
  begin(tail: Tail | undefined): void {
    if (tail === undefined || this.#entries.length > 0) return
    this.#isWhole = tail.isWhole
    for (const value of tail.values) this.#add({ epoch: tail.epoch, value }, undefined)
  }

  /** @param needed the number of the oldest message that a history may still need */
  add(point: Point | undefined, message: UpstreamMessage, needed: number): void {
    this.#add(point, message)
    while (this.#entries.length > KEPT && (this.#entries[0]?.sequence ?? needed) < needed) {
      this.#entries.shift()
      this.#isWhole = false
    }
  }

  /** Whether the messages from this number on are all there. */
  covers(sequence: number): boolean {
    return (this.#entries[0]?.sequence ?? this.#nextSequence) <= sequence
  }

  /**
   * What follows a history: each later message once, and none that it contains.
   * @param since the number of the next message when the history was requested
   * @returns the messages so far and, if the history is ahead of them, the seam for those to come
   */
  after(tail: Tail | undefined, since: number, isCandles: boolean): Continuation {
    if (tail === undefined || !this.#reaches(tail.epoch)) {
      return { later: messagesOf(this.#entries.filter(({ sequence }) => sequence >= since)) }
    }
    const { epoch } = tail
    const last = this.#entries.filter(({ point }) => point?.epoch === epoch)
    const beyond = this.#entries.filter(({ point }) => point !== undefined && point.epoch > epoch)
    const values = last.map(({ point }) => point?.value ?? '')
    const seam = new Seam(tail, values, this.#isCompleteAt(epoch), isCandles)
    const contained = seam.containedSoFar()
    if (contained !== undefined) return { later: messagesOf([...last.slice(contained), ...beyond]) }
    return beyond.length > 0 ? { later: messagesOf(beyond) } : { later: [], seam }
  }

  /** Whether a history that ends with this epoch can be continued. If not, the browser has asked for one that ends long ago. */
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

function messagesOf(entries: readonly Recent[]): UpstreamMessage[] {
  return entries.flatMap(({ message }) => message ?? [])
}
