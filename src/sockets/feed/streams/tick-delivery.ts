import { AnswerFrame, type UpstreamMessage } from '../wire/index.ts'
import { Audience } from './audience.ts'
import type { Delivery } from './stream.ts'
import type { StreamSpec, Subscription } from './subscription.ts'

/** The ticks of one symbol. A later subscriber gets the newest one at once. */
export class TickDelivery implements Delivery {
  readonly #symbol: string
  readonly #audience: Audience
  /** The subscriptions that have had no message yet. */
  readonly #waiting = new Set<Subscription>()
  #newest: AnswerFrame | undefined

  constructor({ identity, symbol }: StreamSpec) {
    this.#symbol = symbol
    this.#audience = new Audience(identity)
  }

  write(reqId: number): string {
    return `{"ticks":${JSON.stringify(this.#symbol)},"subscribe":1,"req_id":${reqId}}`
  }

  join(subscription: Subscription): void {
    this.#waiting.add(subscription)
    if (this.#newest !== undefined) this.#offer(subscription)
  }

  leave(subscription: Subscription): void {
    this.#audience.remove(subscription)
    this.#waiting.delete(subscription)
  }

  take(message: UpstreamMessage, isFirst: boolean): void {
    this.#newest = new AnswerFrame(message)
    this.#audience.deliver(message)
    if (!isFirst) return
    for (const subscription of Array.from(this.#waiting)) this.#offer(subscription)
  }

  detach(): Subscription[] {
    const all = [...this.#audience.clear(), ...this.#waiting]
    this.#waiting.clear()
    this.#newest = undefined
    return all
  }

  #offer(subscription: Subscription): void {
    const { list } = subscription
    if (list === undefined) this.#serve(subscription)
    else list.arrived(subscription, () => this.#serve(subscription))
  }

  /** Sends a subscription the newest message, and then every later one. */
  #serve(subscription: Subscription): void {
    if (this.#newest === undefined || !this.#waiting.delete(subscription)) return
    // An answer: even a slow browser gets it before the answers to later requests.
    this.#newest.send(subscription.browser.outbox, subscription.prefix)
    this.#audience.add(subscription)
    subscription.served()
  }
}
