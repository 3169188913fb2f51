import { LRUCache } from 'lru-cache'
import { standstill } from '../../../time/standstill.ts'
import { frameOf, type FeedRequest, type UpstreamMessage } from '../wire/index.ts'

/** The refusal that passes by itself, and is the same for everybody. */
export const MARKET_IS_CLOSED = 'MarketIsClosed'
/** How long it is given to equal subscriptions (ms). */
const KEPT_MS = 30_000
const MAX_KEPT = 1000

interface Refusal {
  readonly body: Buffer
  /** By the clock of {@link standstill}. */
  readonly until: number
}

/**
 * What upstream has said of streams whose market is closed. Everybody who watches a market asks again until it opens. Upstream is
 * asked twice a minute at most, however many they are.
 */
export class ClosedMarkets {
  readonly #refusals = new LRUCache<string, Refusal>({ max: MAX_KEPT })

  /** @param identity that of the refused stream */
  note(identity: string, { body }: UpstreamMessage): void {
    this.#refusals.set(identity, { body, until: standstill.now() + KEPT_MS })
  }

  /** The answer to a request for this stream; undefined if upstream is to be asked. */
  answer(identity: string, { prefix }: FeedRequest): Buffer | undefined {
    const refusal = this.#refusals.get(identity)
    return refusal && standstill.now() < refusal.until ? frameOf(prefix, refusal.body) : undefined
  }
}
