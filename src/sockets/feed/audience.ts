import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'
import type { Stream } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** Subscriptions whose messages are the same to the byte. Pages of one build ask with the same `req_id`. */
export class Group {
  readonly key: string
  readonly prefix: Buffer
  /** Ids of a symbol array that these browsers have forgotten. */
  readonly without: ReadonlySet<string> | undefined
  readonly subscriptions = new Set<Subscription>()

  constructor(key: string, prefix: Buffer, without: ReadonlySet<string> | undefined) {
    this.key = key
    this.prefix = prefix
    this.without = without
  }
}

/** The subscriptions that get every message of a stream. */
export class Audience {
  readonly #stream: Stream
  readonly #groups = new Map<string, Group>()
  #latest: Group | undefined

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Adds a subscription. @param prefix what its messages begin with @param without ids whose messages it does not get */
  add(subscription: Subscription, prefix: Buffer, without?: ReadonlySet<string>): void {
    const group = this.#groupFor(prefix, without)
    group.subscriptions.add(subscription)
    subscription.group = group
  }

  remove(subscription: Subscription): void {
    const { group } = subscription
    if (group === undefined) return
    subscription.group = undefined
    group.subscriptions.delete(subscription)
    if (group.subscriptions.size === 0) this.#groups.delete(group.key)
  }

  /** Has a subscription get no more messages with this subscription id. */
  exclude(subscription: Subscription, id: string): void {
    const { group } = subscription
    if (group === undefined) return
    this.remove(subscription)
    subscription.forgotten = new Set([...(subscription.forgotten ?? []), id].sort())
    this.add(subscription, group.prefix, subscription.forgotten)
  }

  /** All subscriptions, each with the prefix of its messages. */
  all(): (readonly [Subscription, Buffer])[] {
    return [...this.#groups.values()].flatMap(({ prefix, subscriptions }) =>
      Array.from(subscriptions, (subscription) => [subscription, prefix] as const),
    )
  }

  /** Removes all subscriptions. @returns each with the prefix of its messages */
  clear(): (readonly [Subscription, Buffer])[] {
    const all = this.all()
    for (const [subscription] of all) this.remove(subscription)
    return all
  }

  /** Calls back with every subscription. */
  forEach(visit: (subscription: Subscription) => void): void {
    for (const { subscriptions } of this.#groups.values()) for (const subscription of subscriptions) visit(subscription)
  }

  /** Sends a message of the stream to all. */
  deliver({ subscriptionId = '', subscription, body }: UpstreamMessage): void {
    const key = this.#stream.conflationKey(subscriptionId)
    for (const { prefix, without, subscriptions } of this.#groups.values()) {
      if (without?.has(subscriptionId) === true) continue
      const frame = frameOf(prefix, subscription, body)
      for (const { member } of subscriptions) member.outbox.deliver(frame, key)
    }
  }

  #groupFor(prefix: Buffer, without: ReadonlySet<string> | undefined): Group {
    // Most often it is the group of the browser before: equal requests have the very same buffer as their prefix.
    const latest = this.#latest
    if (latest?.prefix === prefix && latest.without === without && latest.subscriptions.size > 0) return latest
    const key = [prefix.toString('latin1'), ...(without ?? [])].join('\n')
    let group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, (group = new Group(key, prefix, without)))
    this.#latest = group
    return group
  }
}
