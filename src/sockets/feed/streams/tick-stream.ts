import { AnswerFrame, type FeedRequest, type UpstreamMessage } from '../wire/index.ts'
import { Audience } from './audience.ts'
import type { StreamSpec } from './stream-spec.ts'
import { Stream, type StreamContext, type Tell } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** The ticks of one symbol. A later subscriber gets the newest one at once. */
export class TickStream extends Stream {
  readonly #audience: Audience
  /** The subscriptions that have had no message yet, each with the prefix of its messages. */
  readonly #waiting = new Map<Subscription, Buffer>()
  #newest: AnswerFrame | undefined

  constructor(spec: StreamSpec, context: StreamContext) {
    super(spec, context)
    this.#audience = new Audience(this.identity)
  }

  write(reqId: number): string {
    return `{"ticks":${JSON.stringify(this.symbol)},"subscribe":1,"req_id":${reqId}}`
  }

  /** Sends a subscription the newest message, and then every later one. Until there is one, it waits on. */
  serve(subscription: Subscription): void {
    const prefix = this.#waiting.get(subscription)
    if (this.#newest === undefined || prefix === undefined) return
    this.#waiting.delete(subscription)
    // An answer: even a slow browser gets it before the answers to later requests.
    this.#newest.send(subscription.browser, prefix)
    this.#audience.add(subscription, prefix)
    subscription.served()
  }

  protected joined(subscription: Subscription, { prefix }: FeedRequest): void {
    this.#waiting.set(subscription, prefix)
    if (this.#newest !== undefined) this.#offer(subscription)
  }

  protected left(subscription: Subscription): void {
    this.#audience.remove(subscription)
    this.#waiting.delete(subscription)
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    this.#newest = new AnswerFrame(message)
    this.#audience.deliver(message)
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
    const { hold } = subscription
    if (hold === undefined || hold.isOver) this.serve(subscription)
    else hold.arrived()
  }

  #takeAll(): (readonly [Subscription, Buffer])[] {
    const all = [...this.#audience.clear(), ...this.#waiting]
    this.#waiting.clear()
    return all
  }
}
