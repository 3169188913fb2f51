import type { AnswerFrame, FeedRequest, UpstreamMessage } from '../wire/index.ts'
import type { Requester } from '../upstream/index.ts'
import type { Subscription } from './subscription.ts'

/** What has become of a request for a history. `tooBig`: nobody may get the answer. `lost`: there will be none. */
type HistoryOutcome = UpstreamMessage | 'tooBig' | 'lost'

/** A history that belongs to a stream, and those who wait for it. */
export class History implements Requester {
  /** The number of the stream's next message when the history was requested. */
  readonly since: number
  readonly waiting = new Map<Subscription, FeedRequest>()
  /** Undefined until upstream has answered, and once nobody is given it any more. */
  answer: AnswerFrame | undefined
  /** The number of the message that follows it, once that is known. */
  next: number | undefined
  /** Those who were given it before that, each with the prefix of its messages. */
  readonly ahead = new Map<Subscription, Buffer>()
  readonly #onSettled: (outcome: HistoryOutcome) => void

  constructor(since: number, onSettled: (outcome: HistoryOutcome) => void) {
    this.since = since
    this.#onSettled = onSettled
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

/** Whether a request asks for a history up to now. */
export function isLatest({ fields }: FeedRequest): boolean {
  return (fields.get('end') ?? 'latest') === 'latest'
}
