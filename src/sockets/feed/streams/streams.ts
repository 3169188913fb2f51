import { LRUCache } from 'lru-cache'
import { network } from '../../../limits/networks.ts'
import { standstill } from '../../../time/standstill.ts'
import { type FeedRequest, alreadySubscribed, frameOf, rateLimitError } from '../wire/index.ts'
import { HistoryDelivery } from './history-delivery.ts'
import { Stream, type StreamContext } from './stream.ts'
import { Subscription, SymbolList, type StreamSpec, type Subscriber } from './subscription.ts'
import { TickDelivery } from './tick-delivery.ts'

/** What a request says about its stream. */
type RequestedSpec = Omit<StreamSpec, 'startedBy'>

/** Upstream's granularity of candles in seconds, where a request names none. */
const DEFAULT_GRANULARITY = 60

/**
 * How long a refusal since the market is closed answers equal subscriptions (ms). Everybody who watches a market asks again until it
 * opens. Upstream is asked twice a minute at most, however many they are.
 */
const CLOSED_MS = 30_000
const MAX_CLOSED = 1000

/** The streams of a process, each of which upstream sends once. */
export class Streams {
  readonly #all = new Set<Stream>()
  /** The streams that browsers may join. */
  readonly #byIdentity = new Map<string, Stream>()
  /** What upstream has said of streams whose market is closed, by their identity. */
  readonly #closed = new LRUCache<string, Buffer>({
    max: MAX_CLOSED,
    ttl: CLOSED_MS,
    ttlResolution: 0,
    perf: standstill,
  })
  readonly #context: StreamContext

  constructor(context: Omit<StreamContext, 'ended' | 'marketClosed'>) {
    const ended = (stream: Stream): void => {
      this.#all.delete(stream)
      const { identity } = stream.spec
      if (this.#byIdentity.get(identity) === stream) this.#byIdentity.delete(identity)
    }
    const marketClosed: StreamContext['marketClosed'] = ({ identity }, { body }) =>
      void this.#closed.set(identity, body)
    this.#context = { ...context, ended, marketClosed }
  }

  get size(): number {
    return this.#all.size
  }

  /** How many subscriptions browsers have. */
  get subscribers(): number {
    let count = 0
    for (const { size } of this.#all) count += size
    return count
  }

  /** Subscribes a browser to the ticks of one symbol or of several. Answers with an error if that cannot be. */
  subscribeToTicks(subscriber: Subscriber, request: FeedRequest, number = ++subscriber.lastNumber): void {
    const specs = tickSpecs(request)
    const again = (): void => this.subscribeToTicks(subscriber, request, number)
    if (!this.#admits(subscriber, request, specs, again)) return
    if (specs.every(({ identity }) => this.#byIdentity.has(identity))) this.#context.feedMetrics.hit(request.operation)
    const list = Array.isArray(request.fields.get('ticks')) ? new SymbolList(specs.length) : undefined
    for (const spec of specs) {
      if (list?.isOver === true) return
      if (this.#join(subscriber, request, number, spec, list) === undefined) return list?.end()
    }
  }

  /** Subscribes a browser to a history and what follows it. Answers with an error if that cannot be. */
  subscribeToHistory(subscriber: Subscriber, request: FeedRequest, number = ++subscriber.lastNumber): void {
    const spec = historySpec(request)
    const again = (): void => this.subscribeToHistory(subscriber, request, number)
    if (!this.#admits(subscriber, request, [spec], again)) return
    const subscription = this.#join(subscriber, request, number, spec)
    // The first price of a symbol is short, and may not come for days.
    if (subscription?.isServed === false) subscription.afterAnswer(subscriber.browser.expectAnswer())
  }

  /**
   * Whether a browser may subscribe to streams. If not, it is told: at once, or when a subscription of its own to one of them is
   * answered. If that was refused, or forgotten before its answer, the request is tried again.
   */
  #admits(subscriber: Subscriber, request: FeedRequest, specs: readonly RequestedSpec[], again: () => void): boolean {
    const { browser, subscriptions } = subscriber
    if (browser.isOver) return false
    const taken = specs.find(({ identity }) => subscriptions.has(identity))
    if (taken !== undefined) {
      const answered = browser.awaits(request.memoryBytes)
      const earlier = subscriptions.get(taken.identity)
      earlier?.afterAnswer((isServed) => {
        answered()
        const isStillThere = subscriptions.get(taken.identity) === earlier
        if (isServed && isStillThere) browser.outbox.answer(alreadySubscribed(request, taken.symbol))
        else again()
      })
      return false
    }
    const asked = specs.filter(({ identity }) => !this.#byIdentity.has(identity))
    const refusal = asked.map(({ identity }) => this.#closed.get(identity)).find(Boolean)
    if (refusal !== undefined) {
      browser.outbox.answer(frameOf(request.prefix, refusal))
      return false
    }
    const started = asked.length
    const isTooMany = subscriptions.size + specs.length > this.#context.limits.maxSubscriptions
    const isAdmitted = !isTooMany && (started === 0 || this.#mayStart(subscriber, started))
    if (!isAdmitted) browser.outbox.answer(rateLimitError(request))
    return isAdmitted
  }

  /**
   * Whether a browser may start so many streams. While more than half of the places are taken, browsers of one address may have
   * started no more of the streams that are used than five browsers may have: an address must not take all places.
   */
  #mayStart({ browser }: Subscriber, count: number): boolean {
    const { pool, fairShare } = this.#context
    const isScarce = pool.takenPlaces > pool.places / 2
    if (isScarce && this.#startedBy(network(browser.address)) + count > fairShare.streamsPerAddress) return false
    return fairShare.admits(browser, count)
  }

  /** How many of the streams that are used the browsers of a network have started. */
  #startedBy(address: string): number {
    let count = 0
    for (const { size, spec } of this.#all) if (size > 0 && spec.startedBy === address) count++
    return count
  }

  /** Subscribes a browser to the stream of a request. Answers with an error if there is no place for it. */
  #join(
    subscriber: Subscriber,
    request: FeedRequest,
    number: number,
    spec: RequestedSpec,
    list?: SymbolList,
  ): Subscription | undefined {
    const stream = this.#byIdentity.get(spec.identity) ?? this.#start(subscriber, spec, request)
    if (stream === undefined) {
      subscriber.browser.outbox.answer(rateLimitError(request))
      return undefined
    }
    const subscription = new Subscription(subscriber, stream, request.prefix, number, list)
    stream.join(subscription, request)
    return subscription
  }

  #start({ browser }: Subscriber, requested: RequestedSpec, request: FeedRequest): Stream | undefined {
    const spec = { ...requested, startedBy: network(browser.address) }
    const isTicks = request.operation === 'ticks'
    const delivery = isTicks ? new TickDelivery(spec) : new HistoryDelivery(spec, request, this.#context)
    const stream = new Stream(spec, this.#context, delivery)
    if (!this.#context.pool.place(stream)) return undefined
    this.#all.add(stream)
    this.#byIdentity.set(spec.identity, stream)
    return stream
  }
}

/** The streams that a request for `ticks` describes, one for each symbol. */
function tickSpecs({ fields }: FeedRequest): RequestedSpec[] {
  const symbols = [fields.get('ticks')].flat() as string[]
  return symbols.map((symbol) => ({ identity: `ticks ${symbol}`, type: 'ticks', symbol }))
}

/** The stream that a request for `ticks_history` describes. */
function historySpec({ fields }: FeedRequest): RequestedSpec {
  const symbol = fields.get('ticks_history') as string
  const type = fields.get('style') === 'candles' ? 'candles' : 'ticks'
  const granularity = type === 'candles' ? (fields.get('granularity') ?? DEFAULT_GRANULARITY) : undefined
  return { identity: JSON.stringify(['history', type, symbol, granularity]), type, symbol }
}
