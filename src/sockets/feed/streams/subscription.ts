import type { CloseStatus } from '../../close-codes.ts'

/** What streams and shared answers need of a browser. */
export interface Browser {
  readonly address: string
  readonly isOver: boolean
  /** What a slow browser gets late or not at all. */
  readonly outbox: { deliver(frame: Buffer, stream: string): void }
  /** Counts a request that goes upstream for this browser. False when it exceeds the limit of this minute. */
  spend(): boolean
  /** Sends a frame that must not be lost. @param rest the end of the frame, if others get it too */
  answer(frame: Buffer, rest?: Buffer): void
  /** Sends the message of a stream that waits for a slow browser, before something that must come after it. */
  sendConflated(stream: string): void
  /** Notes that a request waits for its answer, and how many bytes of memory that takes. */
  awaits(bytes: number): void
  awaitsNoMore(bytes: number): void
  /** Counts an answer of unknown size that will come. @returns a function that ends this */
  expectAnswer(): () => void
  /** Takes no further message for now. @returns a function that ends the wait */
  hold(): () => void
  end(close: CloseStatus | undefined): void
  /** Ends it after this time. */
  endLater(close: CloseStatus, ms: number): void
}

/** What a subscription knows of its stream. */
export interface SubscribedStream {
  /** A browser may have one subscription to each stream. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  /** The id that upstream has given the subscription. */
  readonly id: string | undefined
  leave(subscription: Subscription): void
  /** Sends a subscription that was held what has come meanwhile, and then every later message. Absent where none is held. */
  serve?(subscription: Subscription): void
}

/** Why the messages of a stream wait: a request for several symbols is answered once all of them are there. */
export interface Hold {
  readonly isOver: boolean
  /** The stream of one of the symbols has its first message. */
  arrived(): void
  /** Upstream has refused one of the symbols. */
  refused(error: Buffer): void
}

/** Called when a subscription has its first answer, or an error. */
type OnAnswer = (isServed: boolean) => void

/** A browser with its subscriptions: the one place that knows which browser has which. */
export class Subscriber {
  readonly browser: Browser
  /** By the identity of the stream. */
  readonly subscriptions = new Map<string, Subscription>()
  /** Subscriptions that the browser has forgotten before their first answer. They end with that answer. */
  readonly leaving = new Set<Subscription>()

  constructor(browser: Browser) {
    this.browser = browser
  }

  /** How many streams the browser has, with those that it has forgotten and that still wait for their first answer. */
  get count(): number {
    let count = this.subscriptions.size
    for (const { isAttached } of this.leaving) count += Number(isAttached)
    return count
  }

  /** Ends all subscriptions: the browser is gone. */
  leaveAll(): void {
    for (const subscription of [...this.subscriptions.values(), ...this.leaving]) subscription.leave()
  }
}

/** What one browser has asked of one stream. */
export class Subscription {
  readonly subscriber: Subscriber
  readonly stream: SubscribedStream
  readonly hold: Hold | undefined
  /** False once it has ended, in whatever way. */
  isAttached = true
  #isServed = false
  #onAnswer: OnAnswer[] | undefined

  constructor(subscriber: Subscriber, stream: SubscribedStream, hold?: Hold) {
    this.subscriber = subscriber
    this.stream = stream
    this.hold = hold
    subscriber.subscriptions.set(stream.identity, this)
  }

  get browser(): Browser {
    return this.subscriber.browser
  }

  get isServed(): boolean {
    return this.#isServed
  }

  /**
   * Calls back once it has its first answer or an error, at once if it has been answered. A subscription that was lost before
   * gets no answer: its browser is about to be closed.
   */
  afterAnswer(onAnswer: OnAnswer): void {
    if (this.#isServed) onAnswer(true)
    else (this.#onAnswer ??= []).push(onAnswer)
  }

  /** Notes that the first answer has been sent. */
  served(): void {
    this.#isServed = true
    this.#settle(true)
  }

  /** Ends it. The error has been sent. */
  failed(): void {
    this.leave()
    // A browser that asks again must find the stream as it is once all browsers have been told.
    queueMicrotask(() => this.#settle(false))
  }

  /** Ends it. */
  leave(): void {
    this.release()
    this.stream.leave(this)
  }

  /** Lets the browser subscribe to the same again. */
  release(): void {
    const { subscriptions } = this.subscriber
    if (subscriptions.get(this.stream.identity) === this) subscriptions.delete(this.stream.identity)
  }

  #settle(isServed: boolean): void {
    const callbacks = this.#onAnswer ?? []
    this.#onAnswer = undefined
    for (const onAnswer of callbacks) onAnswer(isServed)
  }
}
