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
import { History } from './history.ts'
import { RecentMessages, pointOf, tailOf } from '../history/index.ts'
import type { StreamSpec } from './stream-spec.ts'
import { Stream, type StreamContext, type Tell } from './stream.ts'
import type { Subscription } from './subscription.ts'

/**
 * `ticks_history` with `subscribe`. The first browser's request starts the stream. A later subscriber gets a history as it has
 * asked for it, fetched on another connection, and then exactly the later messages of the stream.
 */
export class HistoryStream extends Stream {
  /** The request that upstream gets. */
  #first: FeedRequest
  readonly #audience: Audience
  /** The subscriptions that wait for the stream to begin. */
  readonly #waiting = new Map<Subscription, FeedRequest>()
  /** Histories for which subscriptions wait: on their way, or ahead of the stream. */
  readonly #open = new Set<History>()
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
    for (const history of this.#open) {
      history.waiting.delete(subscription)
      this.#closeUnused(history)
    }
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    const point = pointOf(message)
    if (this.#subscription === undefined && point === undefined) return this.#begin(message, isFirst)
    this.#recent.add(point, message, this.#oldestNeeded)
    this.#audience.deliver(message)
    for (const history of this.#open) this.#continue(history)
  }

  protected refused(isOfRequest: boolean, tell: Tell): boolean {
    const { key } = this.#first
    for (const concerned of isOfRequest ? this.#takeWaiting(key) : this.#takeAll()) tell(...concerned)
    // The others have asked for something else, which upstream may take.
    for (const [subscription, request] of this.#waiting) {
      this.#first = request
      if (this.context.share.admits(subscription.browser) && this.restart()) return true
      this.#waiting.delete(subscription)
      this.fail(subscription, rateLimitError(request))
    }
    return false
  }

  protected detachAll(): Subscription[] {
    this.#recent = new RecentMessages()
    this.#subscription = undefined
    const all = this.#takeAll().map(([subscription]) => subscription)
    this.#open.clear()
    this.#histories.clear()
    return all
  }

  /** The number of the oldest message that a history may still need. */
  get #oldestNeeded(): number {
    let oldest = Infinity
    for (const histories of [this.#histories.values(), this.#open]) {
      for (const { isStale, oldestNeeded } of histories) if (!isStale) oldest = Math.min(oldest, oldestNeeded)
    }
    return oldest
  }

  /** Takes upstream's answer to the request of the stream. */
  #begin(message: UpstreamMessage, isFirst: boolean): void {
    const { key } = this.#first
    this.#subscription = message.subscription
    const history = new History(this.#first, 0, () => undefined)
    // A history with an end of its own does not reach up to the stream.
    if (history.isLatest) this.#recent.begin(tailOf(message))
    this.#arrived(history, message)
    // The messages that upstream has sent before it may be later all the same.
    if (isFirst) this.#follow(history, this.#recent.nextSequence)
    else this.#continue(history)
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const [subscription, request] of waiting) {
      if (request.key === key) this.#serve(subscription, request, history)
      else this.#give(subscription, request)
    }
    this.#keep(history)
  }

  /** Gives a history to a subscription that joins the living stream. */
  #give(subscription: Subscription, request: FeedRequest): void {
    let history = this.#histories.get(request.key)
    if (history?.isStale === false) this.context.feedMetrics.hit(request.operation)
    else if (this.context.share.admits(subscription.browser)) history = this.#fetch(request)
    else return this.fail(subscription, rateLimitError(request))
    if (history.end === undefined) history.waiting.set(subscription, request)
    else this.#serve(subscription, request, history)
  }

  #fetch(request: FeedRequest): History {
    const { key } = request
    const history = new History(request, this.#recent.nextSequence, (outcome) => {
      if (this.#histories.get(key) === history) this.#histories.delete(key)
      // It belongs to the time before the stream was lost.
      if (!this.#open.delete(history)) return
      const waiting = [...history.waiting]
      history.waiting.clear()
      if (outcome !== 'lost' && outcome !== 'tooBig') return this.#fetched(history, outcome, waiting)
      for (const [subscription] of waiting) {
        if (outcome === 'lost') this.context.oneShots.depart(subscription.browser)
        else subscription.browser.end(CLOSE.tooBig)
        this.leave(subscription)
      }
    })
    this.#open.add(history)
    this.#histories.set(key, history)
    this.context.oneShots.ask((reqId) => request.toUpstreamOnce(reqId), history)
    return history
  }

  #fetched(
    history: History,
    message: UpstreamMessage,
    waiting: readonly (readonly [Subscription, FeedRequest])[],
  ): void {
    if (!this.#recent.covers(history.since)) {
      for (const [subscription, request] of waiting) this.#give(subscription, request)
      return
    }
    if (message.errorCode !== undefined) {
      for (const [subscription, { prefix }] of waiting) this.fail(subscription, frameOf(prefix, message.body))
      return
    }
    this.#arrived(history, message)
    this.#continue(history)
    for (const [subscription, request] of waiting) this.#serve(subscription, request, history)
    this.#keep(history)
  }

  /** Notes what upstream has answered. */
  #arrived(history: History, message: UpstreamMessage): void {
    const { since, isLatest } = history
    const { nextSequence: arrived } = this.#recent
    history.answer = new AnswerFrame(message, this.#subscription)
    history.end = { tail: tailOf(message), isCandles: this.type === 'candles', isLatest, since, arrived }
    this.#open.add(history)
  }

  /** Finds out where a history goes on. While it is ahead of the stream, its subscriptions get no message. */
  #continue(history: History): void {
    if (history.end === undefined) return
    const { next, needed } = this.#recent.after(history.end)
    if (next === undefined) history.needed = needed
    else this.#follow(history, next)
  }

  /** Sends the subscriptions of a history the messages from this number on, and has them get all later ones. */
  #follow(history: History, next: number): void {
    history.next = next
    this.#open.delete(history)
    for (const [subscription, { prefix }] of history.waiting) this.#join(subscription, prefix, next)
    history.waiting.clear()
  }

  /** Keeps a history for browsers that ask for the same a moment later, as pages do that are loaded at the same time. */
  #keep(history: History): void {
    const { key } = history.request
    const { historyMs, kept } = this.context
    const drop = (): void => {
      if (this.#histories.get(key) === history) this.#histories.delete(key)
      history.answer = undefined
      this.#closeUnused(history)
    }
    if (kept.keep(memoryOf(history.request) + (history.answer?.bytes ?? 0), historyMs, drop)) {
      this.#histories.set(key, history)
    } else drop()
  }

  /** Lets go of a history that is ahead, if no browser has it or will be given it: the stream may be silent for days. */
  #closeUnused(history: History): void {
    const { end, answer, waiting } = history
    if (end !== undefined && answer === undefined && waiting.size === 0) this.#open.delete(history)
  }

  #serve(subscription: Subscription, request: FeedRequest, { answer, next, waiting }: History): void {
    if (answer === undefined) return
    answer.send(subscription.browser, request.prefix)
    if (next === undefined) waiting.set(subscription, request)
    else this.#join(subscription, request.prefix, next)
    subscription.served()
  }

  /** Sends a browser the messages from this number on, and has it get all later ones. */
  #join(subscription: Subscription, prefix: Buffer, next: number): void {
    const { outbox } = subscription.browser
    for (const { subscription: part, body } of this.#recent.from(next)) {
      outbox.deliver(frameOf(prefix, part, body), this.identity)
    }
    this.#audience.add(subscription, prefix)
  }

  /** Removes the subscriptions whose request is the one that upstream has refused. @returns each with its prefix */
  #takeWaiting(key: string): (readonly [Subscription, Buffer])[] {
    const equal = [...this.#waiting].filter(([, request]) => request.key === key)
    for (const [subscription] of equal) this.#waiting.delete(subscription)
    return equal.map(([subscription, { prefix }]) => [subscription, prefix])
  }

  /** Removes all subscriptions. @returns each with its prefix */
  #takeAll(): (readonly [Subscription, Buffer])[] {
    const asking = [this.#waiting, ...Array.from(this.#open, ({ waiting }) => waiting)]
    const all = [...this.#audience.clear()]
    for (const waiting of asking) {
      for (const [subscription, { prefix }] of waiting) all.push([subscription, prefix])
      waiting.clear()
    }
    return all
  }
}
