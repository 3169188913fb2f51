import type { Browser, StreamLink, Connection } from '../upstream/index.ts'

/** How long the symbols of a list that have a price wait for those that have none: some are silent for days. */
const COMPLETE_MS = 1000

/** What makes a stream the stream that it is. */
export interface StreamSpec {
  /** Equal for equal streams. A browser may have one subscription to each. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  readonly symbol: string
  /** The network of the browser that was the first to ask for it. */
  readonly startedBy: string
}

/** What a subscription knows of its stream. */
export interface SubscribedStream {
  readonly spec: StreamSpec
  /** The id that upstream has given the subscription. */
  readonly id: string | undefined
  /** The connection that carries it. */
  readonly link: StreamLink | undefined
  leave(subscription: Subscription): void
}

/** A browser with its subscriptions: the one place that knows which browser has which. */
export class Subscriber {
  readonly browser: Browser
  /** By the identity of the stream. */
  readonly subscriptions = new Map<string, Subscription>()
  /** The number of its latest request for streams. A request that waits for an earlier one keeps its number. */
  lastNumber = 0
  /** By type: the number of the last request that an answered `forget_all` concerned. */
  readonly #forgottenUpTo = new Map<StreamSpec['type'], number>()

  constructor(browser: Browser) {
    this.browser = browser
  }

  /**
   * A connection on which this browser expects something, and upstream is silent.
   * @param requests that of requests with one answer
   */
  silentConnection(requests: Connection): Connection | undefined {
    const all = [...this.subscriptions.values()]
    const silent = all.map(({ stream }) => stream.link?.connection).find((connection) => connection?.isSilent === true)
    if (silent !== undefined) return silent
    // A history is fetched on the connection of requests.
    const isWaiting = this.browser.isWaiting || all.some(({ isServed }) => !isServed)
    return isWaiting && requests.isSilent ? requests : undefined
  }

  /** Ends the subscription to the stream with this id. @returns false if there is none */
  forget(id: unknown): boolean {
    for (const subscription of this.subscriptions.values()) {
      const { isServed, stream } = subscription
      if (!isServed || stream.id === undefined || stream.id !== id) continue
      subscription.forget()
      return true
    }
    return false
  }

  /** A `forget_all` has been answered: of the requests up to this number, those without an answer end with their first one. */
  forgetUnanswered(types: readonly unknown[], upTo: number): void {
    for (const type of ['ticks', 'candles'] as const)
      if (types.includes(type)) this.#forgottenUpTo.set(type, Math.max(upTo, this.#forgottenUpTo.get(type) ?? 0))
  }

  /** Whether an answered `forget_all` concerned the request with this number for a stream. */
  hasForgotten({ type }: StreamSpec, number: number): boolean {
    return number <= (this.#forgottenUpTo.get(type) ?? 0)
  }

  /** Ends all subscriptions: the browser is gone. */
  leave(): void {
    for (const subscription of this.subscriptions.values()) subscription.leave()
  }
}

/** What one browser has asked of one stream. */
export class Subscription {
  readonly subscriber: Subscriber
  readonly stream: SubscribedStream
  /** What its messages begin with. */
  readonly prefix: Buffer
  /** The list of symbols that it was asked for with: its messages wait until the list is answered. */
  readonly list: SymbolList | undefined
  /** The number of the request that asked for it, among those of its browser. */
  readonly number: number
  /** False once it has ended, in whatever way. */
  isAttached = true
  /** Whether it has its first answer. */
  isServed = false
  #onAnswer: ((isServed: boolean) => void)[] | undefined

  constructor(subscriber: Subscriber, stream: SubscribedStream, prefix: Buffer, number: number, list?: SymbolList) {
    this.subscriber = subscriber
    this.stream = stream
    this.prefix = prefix
    this.number = number
    this.list = list
    list?.parts.push(this)
    subscriber.subscriptions.set(this.identity, this)
    // Its request has waited for another one, and a `forget_all` has been answered meanwhile.
    if (this.isForgotten) this.afterAnswer((isServed) => isServed && this.forget())
  }

  get identity(): string {
    return this.stream.spec.identity
  }

  get browser(): Browser {
    return this.subscriber.browser
  }

  /** Whether it ends with its first answer, because a `forget_all` has waited for that in vain. */
  get isForgotten(): boolean {
    return this.subscriber.hasForgotten(this.stream.spec, this.number)
  }

  /**
   * Calls back once it has its first answer or an error, at once if it has been answered. A subscription that was lost before
   * gets no answer: its browser is about to be closed.
   */
  afterAnswer(onAnswer: (isServed: boolean) => void): void {
    if (this.isServed) onAnswer(true)
    else (this.#onAnswer ??= []).push(onAnswer)
  }

  served(): void {
    this.isServed = true
    this.#settle(true)
  }

  /** Answers it with an error, and ends it. In a list that is not answered, that answers and ends the whole list. */
  fail(error: Buffer): void {
    if (!this.isAttached) return
    const { list } = this
    this.browser.outbox.sendConflated(this.identity)
    this.browser.outbox.answer(error)
    if (list?.isOver === false) list.end()
    else this.end()
  }

  /** Ends it for the browser, which has what it was sent until now. */
  forget(): void {
    this.browser.outbox.sendConflated(this.identity)
    this.leave()
  }

  /** Ends it, so that the browser may subscribe to the same again. */
  leave(): void {
    const { subscriptions } = this.subscriber
    if (subscriptions.get(this.identity) === this) subscriptions.delete(this.identity)
    this.stream.leave(this)
  }

  /** Ends it, and what waits for its answer goes on without. The error has been sent. */
  end(): void {
    this.leave()
    // A browser that asks again must find the stream as it is once all browsers have been told.
    queueMicrotask(() => this.#settle(false))
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
export class SymbolList {
  readonly parts: Subscription[] = []
  readonly #size: number
  /** Sends the first price, for each symbol that has one. */
  readonly #arrived = new Map<Subscription, () => void>()
  #timer: NodeJS.Timeout | undefined
  isOver = false

  /** @param size how many symbols there will be */
  constructor(size: number) {
    this.#size = size
  }

  /** One of the symbols has its first price. @param send sends it */
  arrived(part: Subscription, send: () => void): void {
    if (this.isOver) return send()
    this.#arrived.set(part, send)
    if (this.#arrived.size >= this.#size) return this.#start()
    this.#timer ??= setTimeout(() => this.#start(), COMPLETE_MS).unref()
  }

  end(): void {
    this.#over()
    for (const part of this.parts) part.end()
  }

  #start(): void {
    this.#over()
    for (const part of this.parts) {
      if (!part.isAttached) continue
      this.#arrived.get(part)?.()
      // The request has been answered, although this symbol may be silent.
      if (!part.isServed) part.served()
    }
  }

  #over(): void {
    this.isOver = true
    clearTimeout(this.#timer)
  }
}
