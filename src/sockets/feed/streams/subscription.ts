import type { Browser, StreamLink, UpstreamLink } from '../upstream/index.ts'

/** How long the symbols of a list that have a price wait for those that have none: some are silent for days. */
const COMPLETE_MS = 1000

/** What a subscription knows of its stream. */
export interface SubscribedStream {
  /** A browser may have one subscription to each stream. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  /** The id that upstream has given the subscription. */
  readonly id: string | undefined
  /** The connection that carries it. */
  readonly link: StreamLink | undefined
  leave(subscription: Subscription): void
  /** Sends a subscription that was held what has come meanwhile, and then every later message. Absent where none is held. */
  serve?(subscription: Subscription): void
}

/** Called when a subscription has its first answer, or an error. */
type OnAnswer = (isServed: boolean) => void

/** A browser with its subscriptions: the one place that knows which browser has which. */
export class Subscriber {
  readonly browser: Browser
  /** By the identity of the stream. */
  readonly subscriptions = new Map<string, Subscription>()

  constructor(browser: Browser) {
    this.browser = browser
  }

  /**
   * A connection on which this browser expects something, and upstream is silent.
   * @param requests that of requests with one answer
   */
  silentLink(requests: UpstreamLink): UpstreamLink | undefined {
    const all = [...this.subscriptions.values()]
    const ofStream = all.find(({ stream }) => stream.link?.connection.isSilent === true)
    if (ofStream !== undefined) return ofStream.stream.link?.connection
    // A history is fetched on the connection of requests.
    const isWaiting = this.browser.isWaiting || all.some(({ isServed }) => !isServed)
    return isWaiting && requests.isSilent ? requests : undefined
  }

  /** Ends all subscriptions: the browser is gone. */
  leaveAll(): void {
    for (const subscription of this.subscriptions.values()) subscription.leave()
  }
}

/** What one browser has asked of one stream. */
export class Subscription {
  readonly subscriber: Subscriber
  readonly stream: SubscribedStream
  /** The list of symbols that it was asked for with: its messages wait until the list is answered. */
  readonly list: SymbolArray | undefined
  /** False once it has ended, in whatever way. */
  isAttached = true
  /** Whether it has its first answer. */
  isServed = false
  /** Whether it ends with its first answer, because a `forget_all` has waited for that in vain. */
  endsWhenServed = false
  #onAnswer: OnAnswer[] | undefined

  constructor(subscriber: Subscriber, stream: SubscribedStream, list?: SymbolArray) {
    this.subscriber = subscriber
    this.stream = stream
    this.list = list
    subscriber.subscriptions.set(stream.identity, this)
  }

  get browser(): Browser {
    return this.subscriber.browser
  }

  /** The subscriptions that were asked for with the same request. */
  get together(): readonly Subscription[] {
    return this.list?.parts ?? [this]
  }

  /**
   * Calls back once it has its first answer or an error, at once if it has been answered. A subscription that was lost before
   * gets no answer: its browser is about to be closed.
   */
  afterAnswer(onAnswer: OnAnswer): void {
    if (this.isServed) onAnswer(true)
    else (this.#onAnswer ??= []).push(onAnswer)
  }

  /** Notes that the first answer has been sent. */
  served(): void {
    this.isServed = true
    this.#settle(true)
  }

  /** Ends it. The error has been sent. */
  failed(): void {
    this.leave()
    // A browser that asks again must find the stream as it is once all browsers have been told.
    queueMicrotask(() => this.#settle(false))
  }

  /** Ends it, so that the browser may subscribe to the same again. */
  leave(): void {
    const { subscriptions } = this.subscriber
    if (subscriptions.get(this.stream.identity) === this) subscriptions.delete(this.stream.identity)
    this.stream.leave(this)
  }

  #settle(isServed: boolean): void {
    const callbacks = this.#onAnswer ?? []
    this.#onAnswer = undefined
    for (const onAnswer of callbacks) onAnswer(isServed)
  }
}

/**
 * A request for the ticks of several symbols. Each symbol is a subscription of its own, and their first prices are sent together:
 * if upstream refuses one of them, the browser gets that error and nothing else, as if upstream had been asked for the array.
 */
export class SymbolArray {
  /** The subscriptions to the symbols. */
  readonly parts: Subscription[] = []
  readonly #answer: (error: Buffer) => void
  readonly #size: number
  #arrived = 0
  #timer: NodeJS.Timeout | undefined
  /** Whether it has been answered. */
  isOver = false

  /** @param size how many symbols there will be @param answer sends an error */
  constructor(size: number, answer: (error: Buffer) => void) {
    this.#size = size
    this.#answer = answer
  }

  /** Adds the subscription to a symbol. */
  add(part: Subscription): void {
    this.parts.push(part)
  }

  /** One of the symbols has its first price. */
  arrived(): void {
    if (this.isOver) return
    if (++this.#arrived >= this.#size) return this.#start()
    this.#timer ??= setTimeout(() => this.#start(), COMPLETE_MS).unref()
  }

  /** Upstream has refused one of the symbols. */
  refused(error: Buffer): void {
    if (this.isOver) return
    this.#answer(error)
    this.cancel()
  }

  /** Ends all subscriptions. */
  cancel(): void {
    this.#end()
    for (const part of this.parts) part.failed()
  }

  #start(): void {
    this.#end()
    for (const part of this.parts) {
      if (!part.isAttached) continue
      part.stream.serve?.(part)
      // The request has been answered, although this symbol may be silent.
      if (!part.isServed) part.served()
    }
  }

  #end(): void {
    this.isOver = true
    clearTimeout(this.#timer)
  }
}
