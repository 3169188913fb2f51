import type { HistoryEnd } from '../history/index.ts'
import type { AnswerFrame, FeedRequest } from '../wire/index.ts'
import type { Subscription } from './subscription.ts'

/** A subscription with its request. */
export type Asking = readonly [Subscription, FeedRequest]

/** How long a request for a history is shared, and the stream's messages are kept for it. */
const STALE_MS = 30_000

/** A history that belongs to a stream. */
export class History {
  readonly request: FeedRequest
  /** The number of the stream's next message when the history was requested. */
  readonly since: number
  /** The subscriptions that get no message yet, because the history has not come or is ahead of the stream. */
  readonly waiting = new Map<Subscription, FeedRequest>()
  /** Undefined until upstream has answered, and once no further browser is given it. */
  answer: AnswerFrame | undefined
  /** Where it ends. Undefined until upstream has answered. */
  end: HistoryEnd | undefined
  /** The number of the message that follows it. Undefined while it has not come or is ahead of the stream. */
  next: number | undefined
  /** The number of the oldest message that may follow it. Infinity while there is none. */
  needed: number
  readonly #staleAt = performance.now() + STALE_MS

  constructor(request: FeedRequest, since: number) {
    this.request = request
    this.since = since
    this.needed = since
  }

  /** Whether upstream has not answered for so long that the messages since then are no longer kept. */
  get isStale(): boolean {
    return this.end === undefined && performance.now() >= this.#staleAt
  }

  /** Whether other browsers may be given it. */
  get isShared(): boolean {
    return this.end === undefined ? !this.isStale : this.answer !== undefined
  }

  /** Whether a browser has it, will have it or may be given it. */
  get isUsed(): boolean {
    return this.end === undefined || this.answer !== undefined || this.waiting.size > 0
  }

  /** Whether the request asks for a history up to now. */
  get isLatest(): boolean {
    return (this.request.fields.get('end') ?? 'latest') === 'latest'
  }
}

/** Empties a collection. @returns what was in it */
export function takeAll(waiting: Map<Subscription, FeedRequest>): Asking[] {
  const all = [...waiting]
  waiting.clear()
  return all
}
