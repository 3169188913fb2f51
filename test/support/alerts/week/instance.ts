/** What goes on around one process at one step. */
export interface Moment {
  /** Since Monday, midnight. */
  readonly minute: number
  /** How much happens at this process: 1 at noon of a working day. */
  readonly activity: number
  /** Minutes since the process started. */
  readonly age: number
  readonly isDraining: boolean
  readonly isStoreAway: boolean
  readonly isMarketClosed: boolean
  readonly isBroken: boolean
  /** The place of the process in a roll. */
  readonly place: number
}

/** A number at a moment. */
type At = (moment: Moment) => number

/** Calls that reach upstream, and fail here while the store is away. */
const whileStore =
  (rate: At): At =>
  (moment) =>
    moment.isStoreAway ? 0 : rate(moment)
const whileStoreAway =
  (rate: At): At =>
  (moment) =>
    moment.isStoreAway ? rate(moment) : 0
/** Orders are made by people, who see that the market is closed, but for a program that tries once an hour. */
const orders =
  (perMinute: number): At =>
  (moment) =>
    moment.isMarketClosed ? 0 : perMinute * moment.activity
const rate =
  (perMinute: number, always = 0): At =>
  ({ activity }) =>
    perMinute * activity + always

/** How often everything happens that is counted, at one process in a minute. */
export const EVENTS: Readonly<Record<string, At>> = {
  'read.fast': whileStore((now) => (now.isBroken ? 0 : rate(480, 1)(now))),
  'read.medium': whileStore(rate(0.6)),
  'read.slow': whileStore(rate(0.3)),
  'read.refused': whileStore(rate(60)),
  'read.limited': whileStore(rate(0.1)),
  'read.timeout': whileStore(rate(0.2)),
  'read.lost': whileStore(rate(0.3)),
  'read.serverError': whileStore((now) => (now.isBroken ? rate(480, 1)(now) : rate(0.3)(now))),
  // Tabs that were left open go on asking.
  'read.anonymous': whileStore(rate(6, 0.7)),
  'read.storeAway': whileStoreAway(rate(550, 1)),
  'order.answered': whileStore(orders(8)),
  'order.refused': whileStore((now) => orders(0.6)(now) + (now.isMarketClosed ? 1 / 180 : 0)),
  'order.limited': whileStore(orders(0.02)),
  'order.lost': whileStore(orders(0.01)),
  'page.session': rate(60, 0.5),
  // Programs that look for other servers' pages.
  'page.unknown': rate(0, 3),
  'login.finished': whileStore(rate(5)),
  'login.access_denied': whileStore(rate(0.6)),
  'login.state_mismatch': whileStore(rate(0.3, 0.01)),
  'login.login_failed': whileStore(rate(0.04)),
  'login.provider_unavailable': whileStore(rate(0.03)),
  'login.invalid_grant': whileStore(rate(0.02)),
  'login.rate_limited': whileStore(rate(0.05)),
  'login.try_later': whileStoreAway(rate(6)),
  'login.invalid_client': () => 0,
  'refresh.granted': rate(12),
  'refresh.invalid_grant': rate(0.3),
  'refresh.unavailable': rate(0.05),
  'refresh.invalid_client': () => 0,
  'many.login_failed': () => 0,
  'identity.unusable': rate(0.05),
  'socket.public.1000': rate(10),
  'socket.public.1006': rate(2),
  'socket.public.1012': ({ isDraining }) => (isDraining ? 500 : 0),
  'socket.public.1013': rate(0.1),
  'socket.public.4408': rate(0.3),
  'socket.public.4429': rate(0.1),
  'socket.trading.1000': rate(4),
  'socket.trading.1006': rate(1),
  'socket.trading.1012': ({ isDraining }) => (isDraining ? 150 : 0),
  'socket.trading.1013': rate(0.05),
  'socket.trading.4401': rate(0.3),
  'socket.trading.4403': rate(0.02),
  'memory.public': () => 0,
  'feed.message': ({ activity, isMarketClosed }) => 3000 * (isMarketClosed ? 0.02 : activity + 0.1),
  'feed.conflated': ({ activity, isMarketClosed }) => (isMarketClosed ? 0 : 20 * activity),
  'feed.reconnect': () => 0.01,
  'link.complete': rate(0.3),
  'link.partial': rate(0.006),
  'link.cleaned': rate(0.01),
  'session.gone': rate(0.02),
  'store.refusedWrite': () => 0,
  'store.unreplicated': () => 0,
  'store.unconfirmed': (now) => (now.isStoreAway ? rate(8)(now) : rate(0.02)(now)),
  'log.dropped': () => 0,
  'process.unhandledRejection': () => 0,
  'budget.refusedOrder': () => 0,
}

const READ = '/api/trading/v1/options/accounts'
const ORDER = '/api/trading/v1/options/contracts/bulk-purchase/real'
const RESPONSES = ['fast', 'medium', 'slow', 'refused', 'limited', 'timeout', 'lost', 'serverError']
/** Calls that this server answers by itself. */
const HERE = ['read.anonymous', 'read.storeAway']
const reads = (...kinds: readonly string[]): string[] => kinds.map((kind) => `read.${kind}`)

/** The buckets of a histogram, by the kinds of calls that are below each. */
const buckets = (name: string, labels: string, more: readonly string[] = []): [string, readonly string[]][] => {
  const quick = [...reads('fast', 'refused', 'limited'), ...more]
  const below = { '1': quick, '2.5': quick, '5': [...quick, ...reads('medium', 'lost', 'serverError')] }
  const all = [...reads(...RESPONSES), ...more]
  return [...Object.entries(below), ['10', all] as const, ['+Inf', all] as const].map(([le, events]) => [
    `${name}_bucket{${labels},le="${le}"}`,
    events,
  ])
}

const named = (prefix: string, metric: string, labels: string): [string, readonly string[]][] =>
  Object.keys(EVENTS)
    .filter((event) => event.startsWith(`${prefix}.`))
    .map((event) => [`${metric}{${labels}"${event.slice(prefix.length + 1)}"}`, [event]])

const http = (route: string, method: string, status: number, ...events: string[]): [string, readonly string[]] => [
  `bff_http_request_duration_seconds_count{route="${route}",method="${method}",status="${status}"}`,
  events,
]
const upstream = (route: string, method: string, outcome: string, ...events: string[]): [string, readonly string[]] => [
  `bff_upstream_requests_total{route="${route}",method="${method}",outcome="${outcome}"}`,
  events,
]

/** Counters that have every series from the start of a process. Any other one gets a series with labels with its first event. */
export const FROM_ZERO: ReadonlySet<string> = new Set([
  'bff_logins_total',
  'bff_sessions_ended_total',
  'bff_token_refreshes_total',
  'bff_relay_messages_total',
  'bff_relay_closed_for_memory_total',
  'bff_session_store_refused_writes_total',
  'bff_session_store_errors_total',
  'bff_upstream_budget_calls_total',
])

/** Every counter of a process, by its series, with the events that it counts. */
export const COUNTERS: readonly (readonly [series: string, events: readonly string[]])[] = [
  http(READ, 'GET', 200, ...reads('fast', 'medium', 'slow')),
  http(READ, 'GET', 401, 'read.anonymous'),
  http(READ, 'GET', 404, 'read.refused'),
  http(READ, 'GET', 429, 'read.limited'),
  http(READ, 'GET', 502, ...reads('lost', 'serverError')),
  http(READ, 'GET', 503, 'read.storeAway'),
  http(READ, 'GET', 504, 'read.timeout'),
  http(ORDER, 'POST', 200, 'order.answered'),
  http(ORDER, 'POST', 400, 'order.refused'),
  http(ORDER, 'POST', 429, 'order.limited'),
  http(ORDER, 'POST', 502, 'order.lost'),
  http('/auth/session', 'GET', 200, 'page.session'),
  http('/auth/callback', 'GET', 303, 'login.finished', 'login.access_denied', 'login.provider_unavailable'),
  http('/*', 'GET', 404, 'page.unknown'),
  ...buckets('bff_http_request_duration_seconds', `route="${READ}",method="GET",status="200"`, HERE),
  upstream(READ, 'GET', 'answered', ...reads('fast', 'medium', 'slow')),
  upstream(READ, 'GET', 'refused', 'read.refused'),
  upstream(READ, 'GET', 'limited', 'read.limited'),
  upstream(READ, 'GET', 'timeout', 'read.timeout'),
  upstream(READ, 'GET', 'lost', 'read.lost'),
  upstream(READ, 'GET', 'server_error', 'read.serverError'),
  upstream(ORDER, 'POST', 'answered', 'order.answered'),
  upstream(ORDER, 'POST', 'refused', 'order.refused'),
  upstream(ORDER, 'POST', 'limited', 'order.limited'),
  upstream(ORDER, 'POST', 'lost', 'order.lost'),
  ...buckets('bff_upstream_request_duration_seconds', `route="${READ}",method="GET"`),
  [`bff_upstream_request_duration_seconds_count{route="${READ}",method="GET"}`, reads(...RESPONSES)],
  ...named('login', 'bff_logins_total', 'flow="login",outcome='),
  ...named('refresh', 'bff_token_refreshes_total', 'outcome='),
  ...named('many', 'bff_provider_refuses_many_total', 'code='),
  ['bff_identity_requests_total{outcome="found"}', ['login.finished']],
  ['bff_identity_requests_total{outcome="unusable"}', ['identity.unusable']],
  ...named('socket.public', 'bff_relay_endings_total', 'kind="public",code='),
  ...named('socket.trading', 'bff_relay_endings_total', 'kind="trading",code='),
  ...named('memory', 'bff_relay_closed_for_memory_total', 'kind='),
  ['bff_relay_messages_total{direction="to_browser"}', ['feed.message']],
  ['bff_feed_conflated_messages_total', ['feed.conflated']],
  ['bff_feed_reconnects_total', ['feed.reconnect']],
  ['bff_attribution_links_total{outcome="complete",by="navigation"}', ['link.complete']],
  ['bff_attribution_links_total{outcome="partial",by="navigation"}', ['link.partial', 'link.cleaned']],
  ['bff_attribution_notes_total{note="cleaned",by="navigation"}', ['link.cleaned']],
  ['bff_session_store_refused_writes_total{reason="oom"}', ['store.refusedWrite']],
  ['bff_sessions_ended_total{reason="gone"}', ['session.gone']],
  ['bff_session_ends_unreplicated_total', ['store.unreplicated']],
  ['bff_session_store_errors_total{kind="unconfirmed"}', ['store.unconfirmed']],
  ['bff_log_lines_dropped_total', ['log.dropped']],
  ['bff_unhandled_rejections_total', ['process.unhandledRejection']],
  ['bff_upstream_budget_calls_total{class="orders",outcome="refused"}', ['budget.refusedOrder']],
]
