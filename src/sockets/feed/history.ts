import type { AnswerFrame } from './answer-frame.ts'
import type { UpstreamMessage } from './dissect.ts'
import type { FeedRequest } from './parse-request.ts'
import type { Subscription } from './subscription.ts'
import type { Requester } from './upstream-link.ts'

/** A history of a stream, and those who wait for it. */
export class History implements Requester {
  /** The number of the stream's next message when the history was requested. */
  readonly since: number
  readonly waiting = new Map<Subscription, FeedRequest>()
  /** Undefined until upstream has answered, and once nobody is given it any more. */
  answer: AnswerFrame | undefined
  /** The number of the message that follows it, once that is known. */
  next: number | undefined
  /** Those who were given it before that, each with what its messages begin with. */
  readonly ahead = new Map<Subscription, Buffer>()
  readonly #onSettled: (message: UpstreamMessage | undefined) => void

  /** @param onSettled called with upstream's answer, or with nothing when there will be none */
  constructor(since: number, onSettled: (message: UpstreamMessage | undefined) => void) {
    this.since = since
    this.#onSettled = onSettled
  }

  received(message: UpstreamMessage): void {
    this.#onSettled(message)
  }

  lost(): void {
    this.#onSettled(undefined)
  }
}

/** Whether a request asks for a history up to now. */
export function isLatest({ fields }: FeedRequest): boolean {
  return (fields.get('end') ?? 'latest') === 'latest'
}
