import { CLOSE } from '../../close-codes.ts'
import {
  AnswerFrame,
  type FeedRequest,
  type UpstreamMessage,
  frameOf,
  memoryOf,
  rateLimitError,
} from '../wire/index.ts'
import { Audience } from './audience.ts'
import { HistoriesAhead } from './histories-ahead.ts'
import { History, isLatest } from './history.ts'
import { RecentMessages, pointOf, tailOf } from '../history/index.ts'
import type { StreamSpec } from './stream-spec.ts'
import { Stream, type StreamContext, type Tell } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** How long the stream's messages are kept for a history on its way. */
const STALE_MS = 30_000

/**
 * `ticks_history` with `subscribe`. The first browser's request starts the stream. Whoever comes later gets a history as it has
 * asked for it, fetched on another connection, and then exactly the later messages of the stream.
 */
export class HistoryStream extends Stream {
  /** The request that upstream gets. */
  #first: FeedRequest
  readonly #audience: Audience
  /** Those who wait for the stream to begin. */
  readonly #waiting = new Map<Subscription, FeedRequest>()
  /** Histories on their way. */
  readonly #pending = new Set<History>()
  readonly #ahead = new HistoriesAhead()
  /** Histories that can be shared, by the key of their request: on their way, or fetched just now. */
  readonly #histories = new Map<string, History>()
  #recent = new RecentMessages()
  /** The member `subscription` of the stream's messages. Undefined before its history. */
  #subscription: Buffer | undefined

  constructor(spec: StreamSpec, request: FeedRequest, context: StreamContext) {
    super(spec, context)
    this.#first = request
    this.#audience = new Audience(this.identity)
  }

  write(reqId: number): Buffer {
    return this.#first.toUpstream(reqId)
  }

  protected joined(subscription: Subscription, request: FeedRequest): void {
    if (this.#subscription === undefined) this.#waiting.set(subscription, request)
    else this.#give(subscription, request)
  }

  protected left(subscription: Subscription): void {
    this.#audience.remove(subscription)
    this.#waiting.delete(subscription)
    for (const { waiting } of this.#pending) waiting.delete(subscription)
    this.#ahead.leave(subscription)
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    const point = pointOf(message)
    if (this.#subscription === undefined && point === undefined) return this.#begin(message, isFirst)
    const { passed, reached } = this.#ahead.pass(point, this.#recent)
    for (const { ahead, next } of passed) {
      for (const [subscription, prefix] of ahead) this.#follow(subscription, prefix, next)
    }
    const needed = Array.from(this.#histories.values(), ({ since, next = since }) => next)
    this.#recent.add(point, message, Math.min(...needed, this.#ahead.first))
    this.#audience.deliver(message)
    for (const { ahead } of reached) {
      for (const [subscription, prefix] of ahead) this.#audience.add(subscription, prefix)
    }
  }

  protected refused(isOfRequest: boolean, tell: Tell): boolean {
    const { key } = this.#first
    for (const concerned of isOfRequest ? this.#takeWaiting(key) : this.#takeAll()) tell(...concerned)
    // The others have asked for something else, which upstream may take.
    for (const [subscription, request] of this.#waiting) {
      this.#first = request
      if (this.context.share.admits(subscription.browser) && this.restart()) return true
      this.#waiting.delete(subscription)
      this.#refuse(subscription, request)
    }
    return false
  }

  protected detachAll(): Subscription[] {
    this.#recent = new RecentMessages()
    this.#subscription = undefined
    const all = this.#takeAll().map(([subscription]) => subscription)
    this.#pending.clear()
    this.#histories.clear()
    return all
  }

  /** Takes upstream's answer to the request of the stream. */
  #begin(message: UpstreamMessage, isFirst: boolean): void {
    const { key } = this.#first
    this.#subscription = message.subscription
    const history = new History(0, () => undefined)
    history.answer = new AnswerFrame(message)
    // A history with an end of its own does not reach up to the stream.
    if (isLatest(this.#first)) this.#recent.begin(tailOf(message))
    history.next = this.#recent.nextSequence
    // The messages that upstream has sent before it may be later all the same.
    if (!isFirst) this.#continue(history, this.#first, message)
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const [subscription, request] of waiting) {
      if (request.key === key) this.#serve(subscription, request.prefix, history)
      else this.#give(subscription, request)
    }
    if (!this.#keep(this.#first, history)) this.#release(history)
  }

  /** Gives a history to somebody who comes to the living stream. */
  #give(subscription: Subscription, request: FeedRequest): void {
    const { key, prefix } = request
    let history = this.#histories.get(key)
    if (history !== undefined) this.context.feedMetrics.hit(request.operation)
    else if (this.context.share.admits(subscription.browser)) history = this.#fetch(request)
    else return this.#refuse(subscription, request)
    if (history.answer === undefined) history.waiting.set(subscription, request)
    else this.#serve(subscription, prefix, history)
  }

  #fetch(request: FeedRequest): History {
    const { key } = request
    const history = new History(this.#recent.nextSequence, (outcome) => {
      if (this.#histories.get(key) === history) this.#histories.delete(key)
      // It belongs to the time before the stream was lost.
      if (!this.#pending.delete(history)) return
      const waiting = [...history.waiting]
      if (outcome === 'lost') for (const [subscription] of waiting) this.#depart(subscription)
      else if (outcome === 'tooBig') for (const [{ browser }] of waiting) browser.end(CLOSE.tooBig)
      else this.#fetched(history, request, outcome, waiting)
    })
    this.#pending.add(history)
    this.#histories.set(key, history)
    // The messages since then cannot be kept for ever. If they are gone when the answer comes, another history is fetched.
    setTimeout(() => {
      if (history.answer === undefined && this.#histories.get(key) === history) this.#histories.delete(key)
    }, STALE_MS).unref()
    this.context.oneShots.ask((reqId) => request.toUpstreamOnce(reqId), history)
    return history
  }

  #fetched(
    history: History,
    request: FeedRequest,
    message: UpstreamMessage,
    waiting: readonly (readonly [Subscription, FeedRequest])[],
  ): void {
    if (!this.#recent.covers(history.since)) {
      for (const [subscription, asked] of waiting) this.#give(subscription, asked)
      return
    }
    if (message.errorCode !== undefined) {
      for (const [subscription, { prefix }] of waiting) this.fail(subscription, frameOf(prefix, message.body))
      return
    }
    history.answer = new AnswerFrame(message, this.#subscription)
    this.#continue(history, request, message)
    const isKept = this.#keep(request, history)
    for (const [subscription, { prefix }] of waiting) this.#serve(subscription, prefix, history)
    if (!isKept) this.#release(history)
  }

  /** Finds out where a history goes on. */
  #continue(history: History, request: FeedRequest, message: UpstreamMessage): void {
    const isCandles = this.type === 'candles'
    const { next, seam } = this.#recent.after(tailOf(message), history.since, isCandles, isLatest(request))
    history.next = next
    if (seam !== undefined) this.#ahead.add(history, seam)
  }

  /**
   * Keeps a history for those who ask for the same a moment later, as pages do that are loaded at the same time.
   * @returns whether there is room for it
   */
  #keep(request: FeedRequest, history: History): boolean {
    const { key } = request
    const { historyMs, kept } = this.context
    const drop = (): void => {
      if (this.#histories.get(key) === history) this.#histories.delete(key)
      this.#release(history)
    }
    const isKept = kept.keep(memoryOf(request) + (history.answer?.bytes ?? 0), historyMs, drop)
    if (isKept) this.#histories.set(key, history)
    return isKept
  }

  /** Nobody is given this history any more. For those who have it, only the place where it goes on is needed. */
  #release(history: History): void {
    history.answer = undefined
    this.#ahead.release(history)
  }

  #serve(subscription: Subscription, prefix: Buffer, { answer, next, ahead }: History): void {
    if (answer === undefined) return
    answer.send(subscription.browser, prefix)
    if (next === undefined) ahead.set(subscription, prefix)
    else this.#follow(subscription, prefix, next)
    subscription.served()
  }

  /** Sends a browser the messages from this number on, and has it get all later ones. */
  #follow(subscription: Subscription, prefix: Buffer, next: number): void {
    const { outbox } = subscription.browser
    for (const { subscription: part, body } of this.#recent.from(next)) {
      outbox.deliver(frameOf(prefix, part, body), this.identity)
    }
    this.#audience.add(subscription, prefix)
  }

  #refuse(subscription: Subscription, request: FeedRequest): void {
    this.fail(subscription, rateLimitError(request))
  }

  #depart(subscription: Subscription): void {
    this.context.oneShots.departures.add(subscription.browser)
    this.leave(subscription)
  }

  /** Removes those whose request is the one that upstream has refused. @returns each with its prefix */
  #takeWaiting(key: string): (readonly [Subscription, Buffer])[] {
    const equal = [...this.#waiting].filter(([, request]) => request.key === key)
    for (const [subscription] of equal) this.#waiting.delete(subscription)
    return equal.map(([subscription, { prefix }]) => [subscription, prefix])
  }

  /** Removes all subscriptions. @returns each with its prefix */
  #takeAll(): (readonly [Subscription, Buffer])[] {
    const asking = [this.#waiting, ...Array.from(this.#pending, ({ waiting }) => waiting)]
    const all = [
      ...this.#audience.clear(),
      ...this.#ahead.clear(),
      ...asking.flatMap((waiting) =>
        Array.from(waiting, ([subscription, { prefix }]) => [subscription, prefix] as const),
      ),
    ]
    for (const waiting of asking) waiting.clear()
    return all
  }
}
