import { network } from '../../http/client-address.ts'
import { alreadySubscribed, rateLimitError } from './local-answers.ts'
import { expectAnswer } from './expected-answers.ts'
import { HistoryStream } from './history-stream.ts'
import type { Member } from './member.ts'
import { memoryOf, type FeedRequest } from './parse-request.ts'
import type { StreamPool } from './stream-pool.ts'
import type { StreamContext } from './stream-context.ts'
import type { Stream } from './stream.ts'
import { historySpec, tickSpec, type RequestedSpec } from './stream-spec.ts'
import { Subscription } from './subscription.ts'
import { TickStream } from './tick-stream.ts'

/** When places are scarce, an address may start as many streams as this many browsers may have. */
const BROWSERS_PER_ADDRESS = 5

/** The streams of a process, each of which upstream sends once. */
export class Streams {
  readonly #all = new Set<Stream>()
  /** Those that browsers may join. */
  readonly #byIdentity = new Map<string, Stream>()
  readonly #pool: StreamPool
  readonly #context: StreamContext
  readonly #maxSubscriptions: number

  /** @param maxSubscriptions of one browser */
  constructor(
    pool: StreamPool,
    context: Omit<StreamContext, 'place' | 'lingers' | 'lingersNoMore' | 'retired' | 'ended'>,
    maxSubscriptions: number,
  ) {
    this.#pool = pool
    this.#maxSubscriptions = maxSubscriptions
    this.#context = {
      ...context,
      place: (stream, refusedBy) => pool.place(stream, refusedBy),
      lingers: (stream) => pool.lingers(stream),
      lingersNoMore: (stream) => pool.lingersNoMore(stream),
      retired: (stream) => this.#retire(stream),
      ended: (stream) => {
        this.#all.delete(stream)
        this.#retire(stream)
      },
    }
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

  /**
   * Subscribes a browser to the stream that a request describes.
   * Answers with an error if a limit forbids it, or if the browser has the stream already.
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
    const isTooMany = countOf(member) + claims.length > this.#maxSubscriptions
    // Only upstream knows which symbols the own socket still has, and answers AlreadySubscribed for these.
    if (!isTooMany && service === 'ticks' && member.own?.hasArrays === true) {
      return member.spend() ? pass() : member.answer(rateLimitError(request))
    }
    const known = this.#byIdentity.get(identity)
    if (isTooMany || (known === undefined && !this.#mayStart(member))) return member.answer(rateLimitError(request))
    const stream = known ?? this.#start(member, spec, request)
    if (stream === undefined) return symbols.length > 1 ? pass() : member.answer(rateLimitError(request))
    if (stream === known && service === 'ticks') this.#context.feedMetrics.hit(request.operation)
    const subscription = new Subscription(member, stream)
    stream.join(subscription, request)
    // The first price of a symbol is short, and may not come for days.
    if (service === 'history' && !subscription.isServed) subscription.afterAnswer(expectAnswer(member))
  }

  /** Answers a second subscription once the first is answered. If that was refused, the second takes its place. */
  #again(
    member: Member,
    request: FeedRequest,
    { claim, symbol, again }: { readonly claim: string; readonly symbol: string; readonly again: () => void },
  ): void {
    const bytes = memoryOf(request)
    member.awaits(bytes)
    member.subscriptions.get(claim)?.afterAnswer((isServed) => {
      member.awaitsNoMore(bytes)
      if (isServed) member.answer(alreadySubscribed(request, symbol))
      else again()
    })
  }

  /**
   * Whether a browser may start a stream. While more than half of the places are taken, browsers of one address may have started
   * no more of the streams that are used than five browsers may have: an address must not take all places.
   */
  #mayStart(member: Member): boolean {
    const most = BROWSERS_PER_ADDRESS * this.#maxSubscriptions
    const isScarce = this.#pool.takenPlaces > this.#pool.places / 2
    if (isScarce && this.#startedBy(network(member.address)) >= most) return false
    return this.#context.share.admits(member)
  }

  /** How many symbols the streams have that browsers of a network have started, and that are used. */
  #startedBy(address: string): number {
    let count = 0
    for (const { size, startedBy, symbols } of this.#all) {
      if (size > 0 && startedBy === address) count += symbols.length
    }
    return count
  }

  #start(member: Member, spec: RequestedSpec, request: FeedRequest): Stream | undefined {
    const kind = request.operation === 'ticks' ? TickStream : HistoryStream
    const stream = new kind({ ...spec, startedBy: network(member.address) }, request, this.#context)
    if (!this.#pool.place(stream)) return undefined
    this.#all.add(stream)
    this.#byIdentity.set(spec.identity, stream)
    return stream
  }

  #retire(stream: Stream): void {
    if (this.#byIdentity.get(stream.identity) === stream) this.#byIdentity.delete(stream.identity)
  }
}

/** How many streams a browser has, each symbol counted, with those that it has forgotten and that still wait for their first answer. */
function countOf({ subscriptions, leaving }: Member): number {
  let count = subscriptions.size
  for (const { isAttached, stream } of leaving) if (isAttached) count += stream.claims.length
  return count
}
