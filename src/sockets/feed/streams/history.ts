import type { AnswerFrame, FeedRequest, UpstreamMessage } from '../wire/index.ts'
import type { HistoryEnd } from '../history/index.ts'
import type { Sender } from '../upstream/index.ts'
import type { Subscription } from './subscription.ts'

/** The outcome of a request for a history. `tooBig`: no browser may get the answer. `lost`: there will be none. */
type HistoryOutcome = UpstreamMessage | 'tooBig' | 'lost'

/** How long a request for a history is shared, and the stream's messages are kept for it. */
const STALE_MS = 30_000

/** A history that belongs to a stream, and the subscriptions that wait for it. */
export class History implements Sender {
  readonly request: FeedRequest
  /** The number of the stream's next message when the history was requested. */
  readonly since: number
  readonly waiting = new Map<Subscription, FeedRequest>()
  /** Undefined until upstream has answered, and once no further browser is given it. */
  answer: AnswerFrame | undefined
  /** Where it ends. Undefined until upstream has answered. */
  end: HistoryEnd | undefined
  /** The number of the message that follows it. Undefined while the history is ahead of the stream. */
  next: number | undefined
  /** While it is ahead, the number of the oldest message that may follow it. */
  needed = Infinity
  /** The subscriptions that were given it while it was ahead, each with the prefix of its messages. */
  readonly ahead = new Map<Subscription, Buffer>()
  readonly #staleAt = performance.now() + STALE_MS
  readonly #onSettled: (outcome: HistoryOutcome) => void

  constructor(request: FeedRequest, since: number, onSettled: (outcome: HistoryOutcome) => void) {
    this.request = request
    this.since = since
    this.#onSettled = onSettled
  }

  /** Whether upstream has not answered for so long that the messages since then are no longer kept. */
  get isStale(): boolean {
    return this.end === undefined && performance.now() >= this.#staleAt
  }

  /** The number of the oldest message that the stream must keep for it. */
  get oldestNeeded(): number {
    return this.next ?? (this.end === undefined ? this.since : this.needed)
  }

  /** Whether the request asks for a history up to now. */
  get isLatest(): boolean {
    return (this.request.fields.get('end') ?? 'latest') === 'latest'
  }

  received(message: UpstreamMessage): void {
    this.#onSettled(message)
  }

  tooBig(): void {
    this.#onSettled('tooBig')
  }

  lost(): void {
    this.#onSettled('lost')
  }
}
