import { type Recipient, type UpstreamMessage, frameOf } from '../wire/index.ts'
import type { Subscription } from './subscription.ts'

/** Browsers whose messages are the same to the byte. Pages of one build ask with the same `req_id`. */
interface Group {
  readonly key: string
  readonly prefix: Buffer
  readonly browsers: Set<Recipient>
}

/** The subscriptions that get every message of a stream. */
export class Audience {
  readonly #identity: string
  readonly #groups = new Map<string, Group>()
  readonly #groupOf = new Map<Subscription, Group>()

  /** @param identity that of the stream: a slow browser gets the newest message of each */
  constructor(identity: string) {
    this.#identity = identity
  }

  add(subscription: Subscription): void {
    const { prefix } = subscription
    const key = prefix.toString('latin1')
    const group = this.#groups.get(key) ?? { key, prefix, browsers: new Set() }
    this.#groups.set(key, group)
    group.browsers.add(subscription.browser.outbox)
    this.#groupOf.set(subscription, group)
  }

  remove(subscription: Subscription): void {
    const group = this.#groupOf.get(subscription)
    if (group === undefined) return
    this.#groupOf.delete(subscription)
    group.browsers.delete(subscription.browser.outbox)
    if (group.browsers.size === 0) this.#groups.delete(group.key)
  }

  /** Removes all subscriptions. @returns these */
  clear(): Subscription[] {
    const all = [...this.#groupOf.keys()]
    this.#groupOf.clear()
    this.#groups.clear()
    return all
  }

  deliver({ subscription, body }: UpstreamMessage): void {
    for (const { prefix, browsers } of this.#groups.values()) {
      const frame = frameOf(prefix, subscription, body)
      for (const browser of browsers) browser.deliver(frame, this.#identity)
    }
  }
}
