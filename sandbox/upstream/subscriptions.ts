import { randomUUID } from 'node:crypto'
import { Refusal } from './refusal.ts'

/** The stream types of `forget_all`. */
export const STREAM_TYPES = [
  'ticks',
  'candles',
  'proposal',
  'proposal_open_contract',
  'balance',
  'transaction',
] as const
export type StreamType = (typeof STREAM_TYPES)[number]

/** A stream of a connection. */
export class Subscription {
  readonly id = randomUUID()
  readonly type: StreamType
  /** The content of the stream. A connection has at most one stream of each type and subject. */
  readonly subject: string
  #stop: (() => void) | undefined
  #ended = false

  constructor(type: StreamType, subject: string) {
    this.type = type
    this.subject = subject
  }

  /** Sets the function that stops the source. It is called at once if the stream has already ended. */
  onEnd(stop: () => void): void {
    if (this.#ended) stop()
    else this.#stop = stop
  }

  end(): void {
    this.#ended = true
    this.#stop?.()
  }
}

/** The streams of a connection. Their ids are valid on this connection only. */
export class Subscriptions {
  readonly #running = new Map<string, Subscription>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Starts a stream. @throws Refusal if this connection already streams the subject, or too much */
  open(type: StreamType, subject: string): Subscription {
    this.refuseRunning(type, subject)
    this.refuseTooMany(1)
    const subscription = new Subscription(type, subject)
    this.#running.set(subscription.id, subscription)
    return subscription
  }

  /** @throws Refusal if this connection already streams the subject */
  refuseRunning(type: StreamType, subject: string): void {
    for (const running of this.#running.values())
      if (running.type === type && running.subject === subject)
        throw new Refusal('AlreadySubscribed', `You are already subscribed to ${subject}`)
  }

  /** @throws Refusal if this many more streams exceed the limit of this connection */
  refuseTooMany(more: number): void {
    if (this.#running.size + more > this.#limit)
      throw new Refusal('RateLimit', `You have reached the limit of ${this.#limit} subscriptions.`)
  }

  /** Ends a stream. @returns false if there is none with this id */
  forget(id: string): boolean {
    const subscription = this.#running.get(id)
    if (!subscription) return false
    this.#running.delete(id)
    subscription.end()
    return true
  }

  /** Ends all streams of these types. @returns their ids */
  forgetAll(types: readonly StreamType[]): string[] {
    const ids = [...this.#running.values()].filter(({ type }) => types.includes(type)).map(({ id }) => id)
    for (const id of ids) this.forget(id)
    return ids
  }
}
