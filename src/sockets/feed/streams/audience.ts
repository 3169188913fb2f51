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
  readonly #conflationKey: string
  readonly #groups = new Map<string, Group>()
  readonly #groupOf = new Map<Subscription, Group>()

  /** @param conflationKey for a slow browser, a newer message replaces the older one with the same key */
  constructor(conflationKey: string) {
    this.#conflationKey = conflationKey
  }

  /** Adds a subscription. @param prefix what its messages begin with */
  add(subscription: Subscription, prefix: Buffer): void {
    const key = prefix.toString('latin1')
    const group = this.#groups.get(key) ?? { key, prefix, browsers: new Set() }
    this.#groups.set(key, group)
    group.browsers.add(subscription.browser)
    this.#groupOf.set(subscription, group)
  }

  remove(subscription: Subscription): void {
    const group = this.#groupOf.get(subscription)
    if (group === undefined) return
    this.#groupOf.delete(subscription)
    group.browsers.delete(subscription.browser)
    if (group.browsers.size === 0) this.#groups.delete(group.key)
  }

  /** Removes all subscriptions. @returns each with the prefix of its messages */
  clear(): (readonly [Subscription, Buffer])[] {
    const all = Array.from(this.#groupOf, ([subscription, { prefix }]) => [subscription, prefix] as const)
    for (const [subscription] of all) this.remove(subscription)
    return all
  }

  /** Sends a message of the stream to all. */
  deliver({ subscription, body }: UpstreamMessage): void {
    for (const { prefix, browsers } of this.#groups.values()) {
      const frame = frameOf(prefix, subscription, body)
      for (const browser of browsers) browser.deliver(frame, this.#conflationKey)
    }
  }
}
