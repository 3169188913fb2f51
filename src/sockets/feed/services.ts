import type { FeedRequest } from './parse-request.ts'

/**
 * How a request is served:
 * - `ticks`, `history`: by a stream.
 * - `kept`, `brief`: by one upstream request for all who ask the same. The answer is kept for FEED_CACHE_SECONDS, or for a
 *   quarter of a second at most.
 * - `single`: by an upstream request for this browser alone, on the connection that all browsers share.
 * - `ping`, `forget`, `forget_all`: here, together with the browser's own socket if it has one.
 * - `own`: by an upstream socket of this browser's own.
 */
export type Service = 'ticks' | 'history' | 'kept' | 'brief' | 'single' | 'ping' | 'forget' | 'forget_all' | 'own'

/** The operations that are shared. All others are served by an own socket, and so are unusual forms of these. */
const SERVICES: ReadonlyMap<string, (request: FeedRequest) => Service> = new Map([
  ['ticks', ticks],
  ['ticks_history', history],
  ['active_symbols', once('kept')],
  ['contracts_for', once('kept')],
  ['contracts_list', once('kept')],
  ['trading_times', once('kept')],
  ['time', once('single')],
  ['ping', ({ fields }) => (isBare(fields) && fields.get('ping') === 1 ? 'ping' : 'single')],
  ['forget', () => 'forget'],
  ['forget_all', () => 'forget_all'],
])

/** Decides how a request is served. */
export function serviceOf(request: FeedRequest): Service {
  return SERVICES.get(request.operation)?.(request) ?? 'own'
}

/** Whether a request has exactly this many members, its operation included, besides `req_id` and `passthrough`. */
export function isBare(fields: FeedRequest['fields'], members = 1): boolean {
  return fields.size === members + Number(fields.has('req_id')) + Number(fields.has('passthrough'))
}

function once(service: Service): (request: FeedRequest) => Service {
  return ({ fields }) => (fields.has('subscribe') ? 'own' : service)
}

function ticks({ fields }: FeedRequest): Service {
  const symbols: unknown = fields.get('ticks')
  // Each would be a stream of its own, even if upstream ignores the member: such streams would take the places of others.
  if (fields.has('subscribe') && !isBare(fields, 2)) return 'own'
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
