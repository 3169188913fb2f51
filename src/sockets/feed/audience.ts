import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'
import type { Outbox } from './outbox.ts'
import type { Stream } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** Subscriptions whose messages are the same to the byte. Pages of one build ask with the same `req_id`. */
export interface Group {
  readonly key: string
  readonly prefix: Buffer
  /** Ids of a symbol array that these browsers have forgotten. */
  readonly without: ReadonlySet<string> | undefined
  /** Each with the outbox of its browser, which is then at hand for every message. */
  readonly outboxes: Map<Subscription, Outbox>
}

/** The subscriptions that get every message of a stream. */
export class Audience {
  readonly #stream: Stream
  readonly #groups = new Map<string, Group>()
  #latest: Group | undefined

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Adds a subscription. @param prefix what its messages begin with */
  add(subscription: Subscription, prefix: Buffer, without?: ReadonlySet<string>): void {
    const group = this.#groupFor(prefix, without)
    group.outboxes.set(subscription, subscription.member.outbox)
    subscription.group = group
  }

  remove(subscription: Subscription): void {
    const { group } = subscription
    if (group === undefined) return
    subscription.group = undefined
    group.outboxes.delete(subscription)
    if (group.outboxes.size === 0) this.#groups.delete(group.key)
  }

  /** No more messages with this subscription id for a subscription. */
  exclude(subscription: Subscription, id: string): void {
    const { group } = subscription
    if (group === undefined) return
    this.remove(subscription)
    subscription.forgotten = new Set([...(subscription.forgotten ?? []), id].sort())
    this.add(subscription, group.prefix, subscription.forgotten)
  }

  /** Removes all subscriptions. @returns each with what its messages began with */
  clear(): (readonly [Subscription, Buffer])[] {
    const all = [...this.#groups.values()].flatMap(({ prefix, outboxes }) =>
      Array.from(outboxes.keys(), (subscription) => [subscription, prefix] as const),
    )
    for (const [subscription] of all) subscription.group = undefined
    this.#groups.clear()
    this.#latest = undefined
    return all
  }

  /** Calls back with every subscription. */
  forEach(visit: (subscription: Subscription) => void): void {
    for (const { outboxes } of this.#groups.values()) for (const subscription of outboxes.keys()) visit(subscription)
  }

  /** Sends a message of the stream to all. */
  deliver({ subscriptionId = '', subscription, body }: UpstreamMessage): void {
    const key = this.#stream.conflationKey(subscriptionId)
    for (const { prefix, without, outboxes } of this.#groups.values()) {
      if (without?.has(subscriptionId) === true) continue
      const frame = frameOf(prefix, subscription, body)
      for (const outbox of outboxes.values()) outbox.deliver(frame, key)
    }
  }

  #groupFor(prefix: Buffer, without: ReadonlySet<string> | undefined): Group {
    // Most often it is the one of the browser before, to the very buffer.
    const latest = this.#latest
    if (latest?.prefix === prefix && latest.without === without && latest.outboxes.size > 0) return latest
    const key = [prefix.toString('latin1'), ...(without ?? [])].join('\n')
    let group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, (group = { key, prefix, without, outboxes: new Map() }))
    this.#latest = group
    return group
  }
}
