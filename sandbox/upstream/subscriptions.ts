import { randomUUID } from 'node:crypto'
import { Refusal } from './refusal.ts'

/** The kinds of stream that `forget_all` knows. */
export const STREAM_TYPES = [
  'ticks',
  'candles',
  'proposal',
  'proposal_open_contract',
  'balance',
  'transaction',
] as const
export type StreamType = (typeof STREAM_TYPES)[number]

/** One running stream of one connection. */
export class Subscription {
  readonly id = randomUUID()
  readonly type: StreamType
  /** What is streamed. A connection streams each subject once. */
  readonly subject: string
  #stop: (() => void) | undefined
  #ended = false

  constructor(type: StreamType, subject: string) {
    this.type = type
    this.subject = subject
  }

  /** What ends the stream at its source; called at once when it has ended already. */
  onEnd(stop: () => void): void {
    if (this.#ended) stop()
    else this.#stop = stop
  }

  end(): void {
    this.#ended = true
    this.#stop?.()
  }
}

/** The streams of one connection. Their ids mean nothing to any other. */
export class Subscriptions {
  readonly #running = new Map<string, Subscription>()

  /**
   * Begins a stream.
   * @throws Refusal when this connection streams the subject already
   */
  open(type: StreamType, subject: string): Subscription {
    this.refuseRunning(type, subject)
    const subscription = new Subscription(type, subject)
    this.#running.set(subscription.id, subscription)
    return subscription
  }

  /** @throws Refusal when this connection streams the subject already */
  refuseRunning(type: StreamType, subject: string): void {
    for (const running of this.#running.values())
      if (running.type === type && running.subject === subject)
        throw new Refusal('AlreadySubscribed', `You are already subscribed to ${subject}`)
  }

  /** Ends one stream; false when there is none of that id. */
  forget(id: string): boolean {
    const subscription = this.#running.get(id)
    if (!subscription) return false
    this.#running.delete(id)
    subscription.end()
    return true
  }

  /** Ends every stream of these types, and answers with their ids. */
  forgetAll(types: readonly StreamType[]): string[] {
    const ids = [...this.#running.values()].filter(({ type }) => types.includes(type)).map(({ id }) => id)
    for (const id of ids) this.forget(id)
    return ids
  }
}
