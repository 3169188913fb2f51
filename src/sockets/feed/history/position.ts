import type { FeedRequest, UpstreamMessage } from '../wire/index.ts'
import type { Tail } from './points.ts'
import type { RecentMessages } from './recent-messages.ts'
import { seamOf } from './seam.ts'

/**
 * Where a history is in its stream: the message that follows it. Until the history has come, and while it is ahead of the stream,
 * that is not known, and this is the oldest message that may still follow.
 */
export class Position {
  /** The number of the message. Infinity while none may follow. */
  at: number
  isKnown = false
  /** Whether a history up to now was asked for. If it ends before everything that is known, it is behind the stream. */
  readonly isLatest: boolean
  readonly #isCandles: boolean
  readonly #recent: RecentMessages
  readonly #since: number
  /** The end of the history. Undefined until it has come, and of an empty one. */
  #tail: Tail | undefined
  /** The number of the stream's next message when the history came. */
  #came: number | undefined

  /** @param since the number of the stream's next message when the history was requested */
  constructor(recent: RecentMessages, { fields }: Pick<FeedRequest, 'fields'>, since = recent.end) {
    this.#recent = recent
    this.isLatest = (fields.get('end') ?? 'latest') === 'latest'
    this.#isCandles = fields.get('style') === 'candles'
    this.#since = since
    this.at = since
  }

  /** Whether all messages since the request are still there. If not, nobody can tell what follows the history. */
  get isCovered(): boolean {
    return this.#recent.start <= this.#since
  }

  /** The messages that follow the history. */
  get messages(): UpstreamMessage[] {
    return this.#recent.all.flatMap(({ at, message }) => (at < this.at ? [] : (message ?? [])))
  }

  /** This message follows the history. */
  locate(at: number): void {
    this.at = at
    this.isKnown = true
  }

  /** The history has come. @param tail undefined for an empty one */
  came(tail: Tail | undefined): void {
    this.#tail = tail
    this.#came = this.#recent.end
  }

  /**
   * Looks where the history goes on, so that each later message follows once, and none that it contains. While it is ahead of the
   * stream, this is to be called again after each message.
   * @returns whether it has been found just now
   */
  seek(): boolean {
    const came = this.#came
    if (came === undefined || this.isKnown) return false
    const tail = this.#tail
    const { all, start } = this.#recent
    const newest = all.at(-1)
    if (tail === undefined) this.locate(this.#since)
    // A message without a point has no place in any history.
    else if (newest !== undefined && newest.point === undefined && newest.at >= came) this.locate(newest.at)
    else if (this.#reaches(tail.epoch)) this.#seekIn(tail, came)
    else this.locate(this.isLatest ? start : this.#since)
    return this.isKnown
  }

  /** Looks among the messages of the last epoch of the history. */
  #seekIn(tail: Tail, came: number): void {
    const { all, end } = this.#recent
    const { epoch } = tail
    const ofEpoch = all.filter(({ point }) => point?.epoch === epoch)
    const passed = all.find(({ point }) => point !== undefined && point.epoch > epoch)
    const streamed = {
      values: ofEpoch.map(({ point }) => point?.value ?? ''),
      begun: ofEpoch.filter(({ message }) => message === undefined).length,
      before: ofEpoch.filter(({ at }) => at < came).length,
      isComplete: this.#recent.isCompleteAt(epoch),
      isPassed: passed !== undefined,
    }
    const seam = seamOf(tail, streamed, this.#isCandles)
    const last = ofEpoch[seam.at - 1]
    if (!seam.isKnown) this.at = ofEpoch[seam.at]?.at ?? Infinity
    else this.locate(last === undefined ? ((ofEpoch[0] ?? passed)?.at ?? end) : last.at + 1)
  }

  /** Whether a history that ends with this epoch can be continued. If not, everything here is later. */
  #reaches(epoch: number): boolean {
    const { all } = this.#recent
    return all.length === 0 || all.some(({ point }) => point !== undefined && point.epoch <= epoch)
  }
}
