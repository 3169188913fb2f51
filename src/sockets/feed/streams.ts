import { network } from '../../http/client-address.ts'
import { alreadySubscribed, rateLimitError } from './local-answers.ts'
import { HistoryStream } from './history-stream.ts'
import type { Member } from './member.ts'
import type { FeedRequest } from './parse-request.ts'
import type { StreamPool } from './stream-pool.ts'
import type { Stream, StreamContext, StreamSpec } from './stream.ts'
import { Subscription } from './subscription.ts'
import { tickClaim, TickStream } from './tick-stream.ts'

/** Upstream's granularity of candles in seconds, where a request names none. */
const DEFAULT_GRANULARITY = 60
/** What a request costs that waits for an earlier one: that much, and its text in several forms. */
const BYTES_PER_REQUEST = 4096
const TEXTS_PER_REQUEST = 4

/** An address may start streams for so many browsers when places are scarce. */
const BROWSERS_PER_ADDRESS = 5

/** What a request says about its stream. */
type Spec = Omit<StreamSpec, 'startedBy'>

/** The streams of a process, each of which upstream sends once. */
export class Streams {
  readonly #byIdentity = new Map<string, Stream>()
  readonly #pool: StreamPool
  readonly #context: StreamContext
  readonly #maxSubscriptions: number

  /** @param maxSubscriptions of one browser */
  constructor(
    pool: StreamPool,
    context: Omit<StreamContext, 'place' | 'lingers' | 'lingersNoMore' | 'ended'>,
    maxSubscriptions: number,
  ) {
    this.#pool = pool
    this.#maxSubscriptions = maxSubscriptions
    this.#context = {
      ...context,
      place: (stream, except) => pool.place(stream, except),
      lingers: (stream) => pool.lingers(stream),
      lingersNoMore: (stream) => pool.lingersNoMore(stream),
      ended: (stream) => {
        if (this.#byIdentity.get(stream.identity) === stream) this.#byIdentity.delete(stream.identity)
      },
    }
  }

  get size(): number {
    return this.#byIdentity.size
  }

  /** How many subscriptions browsers have. */
  get subscribers(): number {
    let count = 0
    for (const { size } of this.#byIdentity.values()) count += size
    return count
  }

  /**
   * Subscribes a browser to the stream that a request describes.
   * @param pass called instead for a symbol array that fits on no connection, and from then on for all ticks of that browser
   */
  subscribe(member: Member, request: FeedRequest, service: 'ticks' | 'history', pass: () => void): void {
    if (member.isOver) return
    const spec = service === 'ticks' ? tickSpec(request) : historySpec(request)
    const { identity, symbols, claims } = spec
    const taken = claims.findIndex((claim) => member.subscriptions.has(claim))
    if (taken >= 0) {
      const again = (): void => this.subscribe(member, request, service, pass)
      return this.#again(member, request, { claim: claims[taken] ?? '', symbol: symbols[taken] ?? '', again })
    }
    const isTooMany = member.subscriptions.size + claims.length > this.#maxSubscriptions
    // Only upstream knows which symbols it still has there, and says AlreadySubscribed to these.
    if (!isTooMany && service === 'ticks' && member.own?.hasArrays === true) {
      return member.spend() ? pass() : member.answer(rateLimitError(request))
    }
    const known = this.#byIdentity.get(identity)
    if (isTooMany || (known === undefined && !this.#mayStart(member))) return member.answer(rateLimitError(request))
    const stream = known ?? this.#start(member, spec, request)
    if (stream === undefined) return symbols.length > 1 ? pass() : member.answer(rateLimitError(request))
    if (stream === known && service === 'ticks') this.#context.feedMetrics.hit(request.operation)
    stream.join(new Subscription(member, stream), request)
  }

  /** Upstream would refuse a second subscription, unless the first is refused itself. */
  #again(
    member: Member,
    request: FeedRequest,
    { claim, symbol, again }: { readonly claim: string; readonly symbol: string; readonly again: () => void },
  ): void {
    const bytes = BYTES_PER_REQUEST + TEXTS_PER_REQUEST * request.prefix.length
    member.awaits(bytes)
    member.subscriptions.get(claim)?.afterAnswer((isServed) => {
      if (isServed) member.answer(alreadySubscribed(request, symbol))
      else again()
      // Not before the others that wait have their answers too: a request that is read then may be answered at once.
      queueMicrotask(() => member.awaitsNoMore(bytes))
    })
  }

  /**
   * Whether a browser may start a stream. While more than half of the places are taken, browsers of one address may have started
   * no more of the streams that are used than five browsers may have: an address must not take all places.
   */
  #mayStart(member: Member): boolean {
    const most = BROWSERS_PER_ADDRESS * this.#maxSubscriptions
    if (this.#pool.isScarce && this.#startedBy(network(member.address)) >= most) return false
    return member.spend()
  }

  /** How many symbols the streams have that browsers of a network have started, and that are used. */
  #startedBy(address: string): number {
    let count = 0
    for (const { size, startedBy, symbols } of this.#byIdentity.values()) {
      if (size > 0 && startedBy === address) count += symbols.length
    }
    return count
  }

  #start(member: Member, spec: Spec, request: FeedRequest): Stream | undefined {
    const kind = request.operation === 'ticks' ? TickStream : HistoryStream
    const stream = new kind({ ...spec, startedBy: network(member.address) }, request, this.#context)
    if (!this.#pool.place(stream)) return undefined
    this.#byIdentity.set(spec.identity, stream)
    return stream
  }
}

function tickSpec({ fields, key }: FeedRequest): Spec {
  const symbols = [fields.get('ticks')].flat() as string[]
  return {
    identity: key,
    type: 'ticks',
    symbols,
    claims: symbols.map(tickClaim),
    names: symbols.map((symbol) => `tick ${symbol}`),
  }
}

function historySpec({ fields }: FeedRequest): Spec {
  const symbol = fields.get('ticks_history') as string
  const isCandles = fields.get('style') === 'candles'
  const type = isCandles ? 'candles' : 'ticks'
  const granularity = isCandles ? (fields.get('granularity') ?? DEFAULT_GRANULARITY) : undefined
  const identity = JSON.stringify(['history', type, symbol, granularity])
  // Upstream may take the ticks of a history for those of `ticks`.
  return { identity, type, symbols: [symbol], claims: [identity], names: [isCandles ? identity : `tick ${symbol}`] }
}
