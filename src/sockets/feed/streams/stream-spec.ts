import type { FeedRequest } from '../wire/index.ts'

/** What makes a stream the stream that it is. */
export interface StreamSpec {
  /** Equal for equal streams. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  readonly symbol: string
  /** What upstream may allow only once on a connection. */
  readonly name: string
  /** The network of the browser that was the first to ask for it. */
  readonly startedBy: string
}

/** What a request says about its stream. */
export type RequestedSpec = Omit<StreamSpec, 'startedBy'>

/** Upstream's granularity of candles in seconds, where a request names none. */
const DEFAULT_GRANULARITY = 60

/** The streams that a request for `ticks` describes, one for each symbol. */
export function tickSpecs({ fields }: FeedRequest): RequestedSpec[] {
  const symbols = [fields.get('ticks')].flat() as string[]
  return symbols.map((symbol) => {
    const name = `ticks ${symbol}`
    return { identity: name, type: 'ticks', symbol, name }
  })
}

/** The stream that a request for `ticks_history` describes. */
export function historySpec({ fields }: FeedRequest): RequestedSpec {
  const symbol = fields.get('ticks_history') as string
  const isCandles = fields.get('style') === 'candles'
  const type = isCandles ? 'candles' : 'ticks'
  const granularity = isCandles ? (fields.get('granularity') ?? DEFAULT_GRANULARITY) : undefined
  const identity = JSON.stringify(['history', type, symbol, granularity])
  // Upstream may take the ticks of a history for those of `ticks`.
  return { identity, type, symbol, name: isCandles ? identity : `ticks ${symbol}` }
}
