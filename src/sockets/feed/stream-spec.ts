import type { FeedRequest } from './parse-request.ts'

/** What makes a stream the stream that it is. */
export interface StreamSpec {
  /** Equal for equal streams. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  /** Upstream counts each as one subscription. */
  readonly symbols: readonly string[]
  /** A browser may have one subscription for each claim. Different streams may have the same claim. */
  readonly claims: readonly string[]
  /** What upstream may allow only once on a connection. */
  readonly names: readonly string[]
  /** The network of the browser that was the first to ask for it. */
  readonly startedBy: string
}

/** What a request says about its stream. */
export type RequestedSpec = Omit<StreamSpec, 'startedBy'>

/** Upstream's granularity of candles in seconds, where a request names none. */
const DEFAULT_GRANULARITY = 60

/** The stream that a request for `ticks` describes. */
export function tickSpec({ fields, key }: FeedRequest): RequestedSpec {
  const symbols = [fields.get('ticks')].flat() as string[]
  return {
    identity: key,
    type: 'ticks',
    symbols,
    claims: symbols.map(tickClaim),
    names: symbols.map((symbol) => `tick ${symbol}`),
  }
}

/** The stream that a request for `ticks_history` describes. */
export function historySpec({ fields }: FeedRequest): RequestedSpec {
  const symbol = fields.get('ticks_history') as string
  const isCandles = fields.get('style') === 'candles'
  const type = isCandles ? 'candles' : 'ticks'
  const granularity = isCandles ? (fields.get('granularity') ?? DEFAULT_GRANULARITY) : undefined
  const identity = JSON.stringify(['history', type, symbol, granularity])
  // Upstream may take the ticks of a history for those of `ticks`.
  return { identity, type, symbols: [symbol], claims: [identity], names: [isCandles ? identity : `tick ${symbol}`] }
}

/** The claim to the ticks of a symbol, which a browser may have once, through whatever request. */
export function tickClaim(symbol: string): string {
  return `ticks ${symbol}`
}
