import program from '../../package.json' with { type: 'json' }
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { REVISION } from '../config/revision.ts'
import { OpenDescriptors } from './descriptors.ts'
import { Instruments } from './instruments.ts'
import { createProviderMetrics } from './provider-metrics.ts'
import { createSessionStoreMetrics } from './store-metrics.ts'
import { RouteHistogram, type RouteLabel } from './route-histogram.ts'
import { unhandledRejections } from './unhandled-rejections.ts'

/** In seconds. The smallest suit responses of this server alone; the largest exceed the usual upstream timeouts. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** How often a timer checks how late the event loop is. At 10 ms, the default, it took most of an idle process's CPU time. */
const LAG_PRECISION_MS = 50
/** The supervisor reports these from the worker that is worst off, which would not show in a mean or a sum. */
const OF_WORST_WORKER = /^process_(open|max)_fds$|^nodejs_eventloop_lag_(?!min_)/
const DIRECTIONS = ['to_browser', 'to_upstream'] as const

/** What becomes of the lines of a log. */
export interface LogLines {
  /** How many were lost so far. */
  readonly droppedLines: number
  readonly waitingBytes: number
}
const NO_LINES: LogLines = { droppedLines: 0, waitingBytes: 0 }

/** Creates a server's metrics. Label values come from closed sets (routes, codes, outcomes), never from a request. */
export function createMetrics(logLines: LogLines = NO_LINES) {
  const registry = new Registry()
  const make = new Instruments(registry)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS })
  make.info(
    'bff_build_info',
    'Always 1; the labels say which version of this server runs, which commit (REVISION) it was built from, and which Node runs it',
    { version: program.version, revision: REVISION, node: process.versions.node },
  )
  addProcessMetrics(make, logLines)
  // To read these, prom-client lists all sockets, which with a thousand of them blocks this process for several ms.
  for (const kind of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${kind}`)
    registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
  registry.removeSingleMetric('process_open_fds')
  const descriptors = new OpenDescriptors()
  make.scrapedGauge('process_open_fds', 'Open file descriptors', () => descriptors.count())
  for (const metric of registry.getMetricsAsArray()) {
    if (OF_WORST_WORKER.test(metric.name)) metric.aggregator = 'max'
  }
  // A RouteHistogram exports only what `add` was given, so the methods that it inherits are hidden.
  type Durations = Pick<RouteHistogram, 'add'>
  const durations = (name: string, help: string, labelNames: readonly RouteLabel[]): Durations =>
    new RouteHistogram({ name, help, labelNames, buckets: BUCKETS, registers: [registry] })
  return {
    registry,
    requests: durations(
      'bff_http_request_duration_seconds',
      'Every request, until its response was sent; status 499: the client left before',
      ['method', 'route', 'status'],
    ),
    ...createProviderMetrics(make, BUCKETS),
    attributionLinks: make.counter(
      'bff_attribution_links_total',
      'Visits of partner links, by how complete their attribution is; those by navigation are browsers',
      ['outcome', 'by'],
    ),
    attributionNotes: make.counter(
      'bff_attribution_notes_total',
      'Visits of partner links, by what is probably a mistake in them; cleaned means that a program has removed all but sidc',
      ['note', 'by'],
    ),
    typedPaths: make.counter(
      'bff_typed_paths_total',
      'Requests for the start of a login or sign-up, or for the check of a link, redirected because their path was not in lower case',
      ['path'],
    ),
    signupsCompleted: make.counter('bff_signups_completed_total', 'Completed sign-ups, with or without a partner', [
      'attributed',
    ]),
    sessionsCreated: make.counter('bff_sessions_created_total', 'Sessions created by logins'),
    sessionsEnded: make.counterFrom0(
      'bff_sessions_ended_total',
      'Ended sessions, by reason. One that reached a limit of its own is counted only if a later request uses it; gone: Redis ' +
        'has lost it, which is counted only if this process saw it live within 12 minutes before',
      [{ reason: 'gone' }],
    ),
    unreplicatedEnds: make.counter(
      'bff_session_ends_unreplicated_total',
      'Ends of sessions, or of all sessions of a subject, that no replica confirmed in time: a failover could undo them',
    ),
    sessionStore: createSessionStoreMetrics(make),
    upstreamRequests: createUpstreamRequests(make),
    upstreamLatency: durations(
      'bff_upstream_request_duration_seconds',
      'From sending a call upstream to its response headers, or to its failure',
      ['method', 'route'],
    ),
    idempotency: make.counter(
      'bff_idempotency_requests_total',
      'Requests with an Idempotency-Key, by what became of them',
      ['outcome'],
    ),
    relays: createRelays(make),
    relayLimit: make.gauge('bff_relay_limit', 'Limit of open sockets (MAX_RELAYS)'),
    relayCloses: make.counter(
      'bff_relay_endings_total',
      'Closed and refused sockets, by the close code that the browser got. The kind is public, trading (of demo and real ' +
        'accounts) or session',
      ['kind', 'code'],
    ),
    ...createWaitingMetrics(make),
    relayRefusals: make.counter('bff_relay_refusals_total', 'Handshakes that were refused, or whose browser left', [
      'reason',
    ]),
    refusedOrigins: make.counter(
      'bff_refused_origins_total',
      'Requests that were refused because of the page that sent them: its origin is not in FRONTEND_ORIGINS',
    ),
    relayTraffic: createRelayTraffic(make),
    countRelayOperation: make.tally(
      'bff_relay_operations_total',
      'Messages from browsers, by operation of the upstream WebSocket API',
      'operation',
    ),
  }
}

function addProcessMetrics(make: Instruments, lines: LogLines): void {
  make.scrapedCounter(
    'bff_unhandled_rejections_total',
    'Errors of this server that nothing handled, so that a part of its work was left undone. The log has their stacks',
    unhandledRejections,
  )
  make.scrapedCounter(
    'bff_log_lines_dropped_total',
    'Lines of the log that were lost: their reader was too slow, or they could not be written',
    () => lines.droppedLines,
  )
  make.scrapedGauge(
    'bff_log_waiting_bytes',
    'Memory of lines of the log that wait to be written; at 16 MiB lines are dropped. With WORKERS that of the worst process',
    () => lines.waitingBytes,
    'max',
  )
}

/** The limit of what waits for slow peers, and the sockets that were closed because of it. */
function createWaitingMetrics(make: Instruments) {
  return {
    relayWaitingLimit: make.gauge(
      'bff_relay_buffered_limit_bytes',
      'Limit of bff_relay_buffered_bytes (MAX_WAITING_BYTES)',
    ),
    closedForMemory: make.counterFrom0(
      'bff_relay_closed_for_memory_total',
      'Sockets that were closed because too much waited in this process for slow peers (MAX_WAITING_BYTES). The kind is public, ' +
        'trading or session',
      [{ kind: 'public' }, { kind: 'session' }, { kind: 'trading' }],
    ),
  }
}

/** The number of open sockets by kind. Without a series at 0, an alert on a share of them would miss a server that opens none. */
function createRelays(make: Instruments): Gauge<'kind'> {
  const relays = make.gauge('bff_relays', 'Open sockets', ['kind'])
  for (const kind of ['public', 'demo', 'real', 'session']) relays.set({ kind }, 0)
  return relays
}

/** Plain numbers, since relays count every message. */
function createRelayTraffic(make: Instruments) {
  const traffic = {
    to_browser: { messages: 0, bytes: 0 },
    to_upstream: { messages: 0, bytes: 0 },
    /** Bytes that wait in this process for slow peers. Replaced by the owner of the relays. */
    bufferedBytes: () => 0,
  }
  for (const unit of ['messages', 'bytes'] as const) {
    const help =
      unit === 'bytes'
        ? 'Bytes of relayed messages'
        : 'Relayed messages. On the shared feed, a message counts once for each browser that gets it, and a message of a ' +
          'browser only if it goes upstream on an own socket'
    const read = () => DIRECTIONS.map((direction) => [{ direction }, traffic[direction][unit]] as const)
    make.scrapedCounter(`bff_relay_${unit}_total`, help, read, ['direction'])
  }
  make.scrapedGauge('bff_relay_buffered_bytes', 'Bytes of messages that wait in this process for slow peers', () =>
    traffic.bufferedBytes(),
  )
  return traffic
}

/** Creates the metrics that a supervisor counts itself. */
export function createSupervisorMetrics(logLines: LogLines = NO_LINES) {
  const registry = new Registry()
  const make = new Instruments(registry)
  addProcessMetrics(make, logLines)
  // prom-client leaves the starts of workers out. That of the supervisor tells an alert that the whole server restarts.
  const startTime = new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start time of the process since unix epoch in seconds.',
    aggregator: 'first',
    registers: [registry],
  })
  startTime.set(Math.round(Date.now() / 1000 - process.uptime()))
  return {
    registry,
    workers: make.gauge('bff_workers', 'Running worker processes; only with WORKERS'),
    silentWorkers: make.gauge(
      'bff_workers_silent',
      'Running worker processes that do not reply in time; they hang, are too busy or are still starting; only with WORKERS',
    ),
    workerRestarts: make.counter(
      'bff_worker_restarts_total',
      'Worker processes that died and were replaced, or that could not be started; only with WORKERS',
    ),
  }
}

/** An entry of the catalog, always the same object, under which a request upstream is counted. */
interface CountedEndpoint {
  readonly method: string
  readonly path: string
}

function createUpstreamRequests(make: Instruments) {
  const counts = new Map<CountedEndpoint, Map<string, number>>()
  make.scrapedCounter(
    'bff_upstream_requests_total',
    'Calls to upstream, by outcome: answered (2xx or 304), refused (4xx), limited (429), held (a response that the browser ' +
      'does not get: 401, a redirect), server_error (5xx), cut (upstream broke off its response), timeout, lost (sent, no ' +
      'response), unreachable (nothing was sent), overBudget (refused here, nothing was sent), browserGone, bodyRefused ' +
      "(the browser's body was too large or incomplete), no_descriptor (this process has no file descriptor left)",
    () =>
      [...counts].flatMap(([{ method, path: route }, outcomes]) =>
        [...outcomes].map(([outcome, count]) => [{ method, route, outcome }, count] as const),
      ),
    ['method', 'route', 'outcome'],
  )
  return {
    count(endpoint: CountedEndpoint, outcome: string): void {
      let outcomes = counts.get(endpoint)
      if (outcomes === undefined) counts.set(endpoint, (outcomes = new Map()))
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    },
  }
}

/** The metrics of one server. */
export type Metrics = ReturnType<typeof createMetrics>
