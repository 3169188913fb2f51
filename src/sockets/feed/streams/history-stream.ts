import { CLOSE } from '../../close-codes.ts'
import {
  AnswerFrame,
  type FeedRequest,
  type UpstreamMessage,
  frameOf,
  memoryOf,
  rateLimitError,
} from '../wire/index.ts'
import { RecentMessages, pointOf, tailOf } from '../history/index.ts'
import { type Asking, History, takeAll } from './history.ts'
import { Stream, type StreamContext, type StreamSpec, type Tell } from './stream.ts'
import type { Browser } from '../upstream/index.ts'
import type { Subscription } from './subscription.ts'

/**
 * `ticks_history` with `subscribe`. The first browser's request starts the stream. A later subscriber gets a history as it has
 * asked for it, fetched on another connection, and then exactly the later messages of the stream.
 */
export class HistoryStream extends Stream {
  /** The request that upstream gets. */
  #first: FeedRequest
  /** The subscriptions that wait for the stream to begin. */
  readonly #waiting = new Map<Subscription, FeedRequest>()
  /** Histories that are on their way, ahead of the stream, or fetched just now. */
  readonly #histories = new Set<History>()
  #recent = new RecentMessages()
  /** The member `subscription` of the stream's messages. Undefined before its history. */
  #subscription: Buffer | undefined

  constructor(spec: StreamSpec, request: FeedRequest, context: StreamContext) {
    super(spec, context)
    this.#first = request
  }

  write(reqId: number): Buffer {
    return this.#first.toUpstream(reqId)
  }

  protected joined(subscription: Subscription, request: FeedRequest): void {
    if (this.#subscription === undefined) this.#waiting.set(subscription, request)
    else this.#give(subscription, request)
  }

  protected left(subscription: Subscription): void {
    this.#waiting.delete(subscription)
    for (const history of this.#histories) {
      history.waiting.delete(subscription)
      this.#dropUnused(history)
    }
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    const point = pointOf(message)
    if (this.#subscription === undefined && point === undefined) return this.#begin(message, isFirst)
    this.#recent.add(point, message, this.#oldestNeeded)
    this.audience.deliver(message)
    for (const history of this.#histories) this.#continue(history)
  }

  protected refused(isOfRequest: boolean, tell: Tell): boolean {
    const { key } = this.#first
    for (const concerned of isOfRequest ? this.#takeWaiting(key) : this.#takeAll()) tell(...concerned)
    // The others have asked for something else, which upstream may take.
    for (const [subscription, request] of this.#waiting) {
      if (this.context.share.admits(subscription.browser)) {
        this.#first = request
        this.restart()
        return true
      }
      this.#waiting.delete(subscription)
      this.fail(subscription, rateLimitError(request))
    }
    return false
  }

  protected detachAll(): Subscription[] {
    this.#recent = new RecentMessages()
    this.#subscription = undefined
    const all = this.#takeAll().map(([subscription]) => subscription)
    this.#histories.clear()
    return all
  }

  /** The number of the oldest message that a history may still need. */
  get #oldestNeeded(): number {
    let oldest = Infinity
    for (const { isStale, needed } of this.#histories) if (!isStale) oldest = Math.min(oldest, needed)
    return oldest
  }

  /** Takes upstream's answer to the request of the stream. */
  #begin(message: UpstreamMessage, isFirst: boolean): void {
    const isOfFirst = ([, { key }]: Asking): boolean => key === this.#first.key
    this.#subscription = message.subscription
    const history = new History(this.#first, 0)
    // A history with an end of its own does not reach up to the stream.
    if (history.isLatest) this.#recent.begin(tailOf(message))
    // The messages that upstream has sent before it may be later all the same.
    if (isFirst) this.#follow(history, this.#recent.nextSequence)
    const waiting = takeAll(this.#waiting)
    this.#arrived(history, message, waiting.filter(isOfFirst))
    for (const each of waiting) if (!isOfFirst(each)) this.#give(...each)
  }

  /** Gives a history to a subscription that joins the living stream. */
  #give(subscription: Subscription, request: FeedRequest): void {
    let history = [...this.#histories].find((each) => each.isShared && each.request.key === request.key)
    if (history !== undefined) this.context.feedMetrics.hit(request.operation)
    else if (this.context.share.admits(subscription.browser)) history = this.#fetch(request)
    else return this.fail(subscription, rateLimitError(request))
    this.#serve(subscription, request, history)
  }

  #fetch(request: FeedRequest): History {
    const { oneShots } = this.context
    const history = new History(request, this.#recent.nextSequence)
    this.#histories.add(history)
    oneShots.ask((reqId) => request.toUpstreamOnce(reqId), {
      isAnsweredOnce: true,
      received: (message) => this.#fetched(history, message),
      tooBig: () => this.#failed(history, (browser) => browser.end(CLOSE.tooBig)),
      lost: () => this.#failed(history, (browser) => oneShots.depart(browser)),
      // A late answer still reaches the browsers that wait for it.
      beat: (reqId) => {
        if (!history.isStale || history.waiting.size > 0) return
        oneShots.connection.release(reqId)
        this.#histories.delete(history)
      },
    })
    return history
  }

  #fetched(history: History, message: UpstreamMessage): void {
    if (message.errorCode === 'RateLimit') this.context.share.refused()
    // Otherwise it belongs to the time before the stream was lost.
    if (!this.#histories.delete(history)) return
    const waiting = takeAll(history.waiting)
    if (!this.#recent.covers(history.since)) {
      for (const [subscription, request] of waiting) this.#give(subscription, request)
    } else if (message.errorCode !== undefined) {
      for (const [subscription, { prefix }] of waiting) this.fail(subscription, frameOf(prefix, message.body))
    } else this.#arrived(history, message, waiting)
  }

  /** There will be no answer, or none that browsers may get. */
  #failed(history: History, close: (browser: Browser) => void): void {
    if (!this.#histories.delete(history)) return
    for (const [subscription] of takeAll(history.waiting)) {
      close(subscription.browser)
      this.leave(subscription)
    }
  }

  /** Gives these subscriptions a history that has come. */
  #arrived(history: History, message: UpstreamMessage, waiting: readonly Asking[]): void {
    const { since, isLatest } = history
    const { nextSequence: arrived } = this.#recent
    history.answer = new AnswerFrame(message, this.#subscription)
    history.end = { tail: tailOf(message), isCandles: this.type === 'candles', isLatest, since, arrived }
    this.#histories.add(history)
    this.#continue(history)
    for (const [subscription, request] of waiting) this.#serve(subscription, request, history)
    this.#keep(history)
  }

  /** Finds out where a history goes on. While it is ahead of the stream, its subscriptions get no message. */
  #continue(history: History): void {
    if (history.end === undefined || history.next !== undefined) return
    const { next, needed } = this.#recent.after(history.end)
    if (next === undefined) history.needed = needed
    else this.#follow(history, next)
  }

  /** Sends the subscriptions of a history the messages from this number on, and has them get all later ones. */
  #follow(history: History, next: number): void {
    history.next = next
    history.needed = next
    for (const [subscription, { prefix }] of takeAll(history.waiting)) this.#join(subscription, prefix, next)
    this.#dropUnused(history)
  }

  /** Keeps a history for browsers that ask for the same a moment later, as pages do that are loaded at the same time. */
  #keep(history: History): void {
    const { historyMs, kept } = this.context
    const drop = (): void => {
      history.answer = undefined
      this.#dropUnused(history)
    }
    if (!kept.keep(memoryOf(history.request) + (history.answer?.bytes ?? 0), historyMs, drop)) drop()
  }

  /** Lets go of a history that no browser has or will be given, also while it is ahead: the stream may be silent for days. */
  #dropUnused(history: History): void {
    if (!history.isUsed) this.#histories.delete(history)
  }

  /** Gives a subscription a history and what follows it, as far as they are there. */
  #serve(subscription: Subscription, request: FeedRequest, { answer, next, waiting }: History): void {
    answer?.send(subscription.browser, request.prefix)
    if (next === undefined) waiting.set(subscription, request)
    else this.#join(subscription, request.prefix, next)
    if (answer !== undefined) subscription.served()
  }

  /** Sends a browser the messages from this number on, and has it get all later ones. */
  #join(subscription: Subscription, prefix: Buffer, next: number): void {
    for (const { subscription: part, body } of this.#recent.from(next)) {
      subscription.browser.deliver(frameOf(prefix, part, body), this.identity)
    }
    this.audience.add(subscription, prefix)
  }

  /** Removes the subscriptions whose request is the one that upstream has refused. @returns each with its prefix */
  #takeWaiting(key: string): (readonly [Subscription, Buffer])[] {
    const equal = [...this.#waiting].filter(([, request]) => request.key === key)
    for (const [subscription] of equal) this.#waiting.delete(subscription)
    return equal.map(([subscription, { prefix }]) => [subscription, prefix])
  }

  /** Removes all subscriptions. @returns each with its prefix */
  #takeAll(): (readonly [Subscription, Buffer])[] {
    const asking = [this.#waiting, ...Array.from(this.#histories, ({ waiting }) => waiting)].flatMap(takeAll)
    return [...this.audience.clear(), ...asking.map(([subscription, { prefix }]) => [subscription, prefix] as const)]
  }
}
