import { membersOf, READS } from '../operations.ts'
import type { FeedRequest } from './wire/index.ts'

/**
 * How a request is served:
 * - `ticks`, `history`: by a stream.
 * - `kept`, `brief`: by one upstream request for all browsers that ask the same. The answer is kept for FEED_CACHE_SECONDS, or
 *   for a quarter of a second at most.
 * - `single`: by an upstream request for this browser alone, on the connection that all browsers share.
 * - `ping`, `forget`, `forget_all`: here, together with the browser's own socket if it has one.
 * - `own`: by an upstream socket of this browser's own.
 */
type Service = 'ticks' | 'history' | 'kept' | 'brief' | 'single' | 'ping' | 'forget' | 'forget_all' | 'own'

/** A request with any other member never goes upstream on a shared socket: the member might change that socket for others. */
const MEMBERS = membersOf(READS)

/** The operations that are shared. All others are served by an own socket, and so are unusual forms of these. */
const SERVICES: ReadonlyMap<string, (request: FeedRequest) => Service> = new Map([
  ['ticks', ticks],
  ['ticks_history', history],
  ['active_symbols', () => 'kept'],
  ['contracts_for', () => 'kept'],
  ['contracts_list', () => 'kept'],
  ['trading_times', () => 'kept'],
  ['time', () => 'single'],
  ['ping', ({ fields }) => (fields.get('ping') === 1 ? 'ping' : 'own')],
  ['forget', ({ fields }) => (typeof fields.get('forget') === 'string' ? 'forget' : 'own')],
  ['forget_all', () => 'forget_all'],
])

/** Decides how a request is served. */
export function serviceOf(request: FeedRequest): Service {
  const known = MEMBERS.get(request.operation)
  const isKnown = known !== undefined && [...request.fields.keys()].every((name) => known.has(name))
  return (isKnown ? SERVICES.get(request.operation)?.(request) : undefined) ?? 'own'
}

function ticks({ fields }: FeedRequest): Service {
  const symbols: unknown = fields.get('ticks')
  // An array without `subscribe` has an answer for each symbol.
  if (!fields.has('subscribe')) return typeof symbols === 'string' ? 'brief' : 'own'
  if (fields.get('subscribe') !== 1) return 'own'
  if (typeof symbols === 'string') return 'ticks'
  const isList = Array.isArray(symbols) && symbols.length > 0 && symbols.every((each) => typeof each === 'string')
  return isList && new Set(symbols).size === symbols.length ? 'ticks' : 'own'
}

function history({ fields }: FeedRequest): Service {
  if (typeof fields.get('ticks_history') !== 'string') return 'own'
  if (!fields.has('subscribe')) return 'brief'
  if (fields.get('subscribe') !== 1) return 'own'
  const isGranular = fields.has('granularity')
  switch (fields.get('style')) {
    case undefined:
    case 'ticks':
      return isGranular ? 'own' : 'history'
    case 'candles':
      return isGranular && typeof fields.get('granularity') !== 'number' ? 'own' : 'history'
    default:
      return 'own'
  }
}
