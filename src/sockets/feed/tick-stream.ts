import { Audience } from './audience.ts'
import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'
import type { FeedRequest } from './parse-request.ts'
import type { StreamContext } from './stream-context.ts'
import { tickClaim, type StreamSpec } from './stream-spec.ts'
import { Stream, type Tell } from './stream.ts'
import type { Subscription } from './subscription.ts'

/** `ticks`: one symbol or several. Whoever comes later gets the newest message of each at once. */
export class TickStream extends Stream {
  readonly #request: FeedRequest
  readonly #audience: Audience
  readonly #newest = new Map<string, UpstreamMessage>()

  constructor(spec: StreamSpec, request: FeedRequest, context: StreamContext) {
    super(spec, context)
    this.#request = request
    this.#audience = new Audience(this)
  }

  write(reqId: number): Buffer {
    return this.#request.toUpstream(reqId)
  }

  /** An error with the id of one symbol of an array ends that symbol alone. */
  override received(message: UpstreamMessage): void {
    const { errorCode, subscriptionId = '' } = message
    if (this.isArray && errorCode !== undefined && this.#newest.has(subscriptionId)) this.#endSymbol(message)
    else super.received(message)
  }

  forgetOne(subscription: Subscription, id: string): void {
    const symbol = symbolOf(this.#newest.get(id))
    this.#audience.exclude(subscription, id)
    // Nobody can forget a symbol that has had no message, since it has no id: for that one the subscription goes on.
    if ((subscription.forgotten?.size ?? 0) >= this.symbols.length) subscription.leave()
    else if (symbol !== undefined) subscription.releaseClaims([tickClaim(symbol)])
  }

  protected joined(subscription: Subscription, { prefix }: FeedRequest): void {
    this.#audience.add(subscription, prefix)
    for (const message of this.#newest.values()) {
      subscription.member.answer(frameOf(prefix, message.subscription, message.body))
    }
    if (this.#newest.size > 0) subscription.served()
  }

  protected left(subscription: Subscription): void {
    this.#audience.remove(subscription)
  }

  protected took(message: UpstreamMessage, isFirst: boolean): void {
    const { subscriptionId = '' } = message
    const isNew = !this.#newest.has(subscriptionId)
    this.#newest.set(subscriptionId, message)
    this.#audience.deliver(message)
    // Some symbols of an array may be silent for days.
    if (isFirst) this.#audience.forEach((subscription) => this.#answered(subscription, subscriptionId))
    if (isNew && this.isComplete) this.#audience.forEach((subscription) => subscription.completed())
  }

  protected refused(_isOfRequest: boolean, tell: Tell): boolean {
    for (const concerned of this.#audience.clear()) tell(...concerned)
    return false
  }

  protected detachAll(): Subscription[] {
    this.#newest.clear()
    return this.#audience.clear().map(([subscription]) => subscription)
  }

  #endSymbol({ subscriptionId: id = '', subscription: part, body }: UpstreamMessage): void {
    // Whoever comes later gets a stream of its own, so that upstream says what has become of the symbol.
    this.context.retired(this)
    for (const [subscription, prefix] of this.#audience.all()) {
      if (subscription.forgotten?.has(id) === true) continue
      subscription.member.sendConflated(this.conflationKey(id))
      subscription.member.answer(frameOf(prefix, part, body))
      this.forgetOne(subscription, id)
    }
  }

  /** The first message is the answer to the request: even a slow browser gets it before the answers to later requests. */
  #answered(subscription: Subscription, id: string): void {
    subscription.member.sendConflated(this.conflationKey(id))
    subscription.served()
  }
}

function symbolOf(message: UpstreamMessage | undefined): string | undefined {
  try {
    const { tick } = JSON.parse(`{${message?.body.toString()}`) as { tick?: { symbol?: unknown } }
    return typeof tick?.symbol === 'string' ? tick.symbol : undefined
  } catch {
    return undefined
  }
}
