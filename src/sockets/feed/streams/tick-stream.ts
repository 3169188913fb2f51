import { AnswerFrame, type FeedRequest, type UpstreamMessage } from '../wire/index.ts'
import { Stream, type Tell } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** The ticks of one symbol. A later subscriber gets the newest one at once. */
export class TickStream extends Stream {
  /** The subscriptions that have had no message yet, each with the prefix of its messages. */
  readonly #waiting = new Map<Subscription, Buffer>()
  #newest: AnswerFrame | undefined

  write(reqId: number): string {
    return `{"ticks":${JSON.stringify(this.spec.symbol)},"subscribe":1,"req_id":${reqId}}`
  }

  /** Sends a subscription the newest message, and then every later one. Until there is one, it waits on. */
  serve(subscription: Subscription): void {
    const prefix = this.#waiting.get(subscription)
    if (this.#newest === undefined || prefix === undefined) return
    this.#waiting.delete(subscription)
    // An answer: even a slow browser gets it before the answers to later requests.
    this.#newest.send(subscription.browser, prefix)
    this.audience.add(subscription, prefix)
    subscription.served()
  }

  protected joined(subscription: Subscription, { prefix }: FeedRequest): void {
    this.#waiting.set(subscription, prefix)
    if (this.#newest !== undefined) this.#offer(subscription)
  }

  protected left(subscription: Subscription): void {
    this.#waiting.delete(subscription)
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    this.#newest = new AnswerFrame(message)
    this.audience.deliver(message)
    if (!isFirst) return
    for (const subscription of Array.from(this.#waiting.keys())) this.#offer(subscription)
  }

  protected refused(_isOfRequest: boolean, tell: Tell): boolean {
    for (const [subscription, prefix] of this.#takeAll()) tell(subscription, prefix)
    return false
  }

  protected detachAll(): Subscription[] {
    this.#newest = undefined
    return this.#takeAll().map(([subscription]) => subscription)
  }

  #offer(subscription: Subscription): void {
    const { list } = subscription
    if (list === undefined || list.isOver) this.serve(subscription)
    else list.arrived()
  }

  #takeAll(): (readonly [Subscription, Buffer])[] {
    const all = [...this.audience.clear(), ...this.#waiting]
    this.#waiting.clear()
    return all
  }
}
