import program from '../../package.json' with { type: 'json' }
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { createLogins, createProviderMetrics, createRefreshes } from './provider-metrics.ts'
import { createSessionStoreMetrics } from './store-metrics.ts'
import { RouteHistogram, type RouteLabel } from './route-histogram.ts'

/** Seconds: from an answer of our own to what is longer than upstream is waited for. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Every metric there is. Label values come from closed sets: routes, codes, outcomes; never from a request. */
export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  addBuildInfo(registry)
  // Gauges that are called totals, which promtool refuses; each is the sum of the one without the suffix.
  for (const kind of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
  // Nothing else of a histogram of prom-client's would count.
  type Durations = Pick<RouteHistogram, 'add'>
  const durations = (name: string, help: string, labelNames: readonly RouteLabel[]): Durations =>
    new RouteHistogram({ name, help, labelNames, buckets: BUCKETS, registry })
  return {
    registry,
    requests: durations('bff_http_request_duration_seconds', 'Requests by route pattern and status', [
      'method',
      'route',
      'status',
    ]),
    logins: createLogins(registry),
    attributionLinks: new Counter({
      name: 'bff_attribution_links_total',
      help: 'Sign-up links by how complete their attribution is, navigations apart from bare fetches',
      labelNames: ['outcome', 'by'],
      registers,
    }),
    signupsCompleted: new Counter({
      name: 'bff_signups_completed_total',
      help: 'Completed sign-ups, with or without a partner',
      labelNames: ['attributed'],
      registers,
    }),
    sessionsCreated: new Counter({
      name: 'bff_sessions_created_total',
      help: 'Sessions made by a login',
      registers,
    }),
    sessionsEnded: new Counter({
      name: 'bff_sessions_ended_total',
      help: 'Sessions ended by this process, by reason',
      labelNames: ['reason'],
      registers,
    }),
    unreplicatedEnds: new Counter({
      name: 'bff_session_ends_unreplicated_total',
      help: 'Sessions ended without a replica confirming it in time: a failover could bring them back',
      registers,
    }),
    sessionStore: createSessionStoreMetrics(registry),
    provider: createProviderMetrics(registry, BUCKETS),
    logLines: createLogMetrics(registry),
    refreshes: createRefreshes(registry),
    upstreamRequests: createUpstreamRequests(registry),
    upstreamLatency: durations(
      'bff_upstream_request_duration_seconds',
      'From sending a REST request upstream to the head of its answer, or to its failure, by catalog route',
      ['method', 'route'],
    ),
    relays: new Gauge({ name: 'bff_relays', help: 'Open relays by kind', labelNames: ['kind'], registers }),
    relayLimit: new Gauge({ name: 'bff_relay_limit', help: 'Relays that may be open', registers }),
    relayCloses: new Counter({
      name: 'bff_relay_endings_total',
      help: 'Relays ended and handshakes refused, by close code sent to the browser',
      labelNames: ['code'],
      registers,
    }),
    relayRefusals: new Counter({
      name: 'bff_relay_refusals_total',
      help: 'Handshakes that came to no relay, by reason',
      labelNames: ['reason'],
      registers,
    }),
    relayTraffic: createRelayTraffic(registry),
    relayOperations: createRelayOperations(registry),
  }
}

function addBuildInfo(registry: Registry): void {
  const info = new Gauge({
    name: 'bff_build_info',
    help: 'The version of this server, and of Node',
    labelNames: ['version', 'node'],
    aggregator: 'first',
    registers: [registry],
  })
  info.set({ version: program.version, node: process.versions.node }, 1)
}

/** Whoever writes the log puts the answer here. */
function createLogMetrics(registry: Registry) {
  const lines = { dropped: () => 0 }
  registry.registerMetric(
    new Counter({
      name: 'bff_log_lines_dropped_total',
      help: 'Lines of the log that were lost: nobody read them in time, or they could not be written',
      registers: [],
      collect() {
        this.reset()
        this.inc(lines.dropped())
      },
    }),
  )
  return lines
}

/** What relays count for every message: plain numbers, since they are read only when somebody asks for the metrics. */
function createRelayTraffic(registry: Registry) {
  const traffic = {
    to_browser: { messages: 0, bytes: 0 },
    to_upstream: { messages: 0, bytes: 0 },
    /** Bytes that wait in this process for a slow peer; whoever holds the relays puts the answer here. */
    bufferedBytes: () => 0,
  }
  for (const unit of ['messages', 'bytes'] as const) {
    registry.registerMetric(
      new Counter({
        name: `bff_relay_${unit}_total`,
        help: `${unit === 'messages' ? 'Messages' : 'Payload bytes'} relayed, by direction`,
        labelNames: ['direction'],
        registers: [],
        collect() {
          this.reset()
          for (const direction of ['to_browser', 'to_upstream'] as const) {
            this.inc({ direction }, traffic[direction][unit])
          }
        },
      }),
    )
  }
  registry.registerMetric(
    new Gauge({
      name: 'bff_relay_buffered_bytes',
      help: 'Bytes of messages that wait for a slow peer',
      registers: [],
      collect() {
        this.set(traffic.bufferedBytes())
      },
    }),
  )
  return traffic
}

/** What the supervisor of several processes counts itself. */
export function createSupervisorMetrics() {
  const registry = new Registry()
  const registers = [registry]
  return {
    registry,
    logLines: createLogMetrics(registry),
    workers: new Gauge({ name: 'bff_workers', help: 'Worker processes that run', registers }),
    workerRestarts: new Counter({
      name: 'bff_worker_restarts_total',
      help: 'Worker processes that died and were started again',
      registers,
    }),
  }
}

/** How often each route was asked for upstream, by outcome: plain numbers, as for relays. */
function createUpstreamRequests(registry: Registry) {
  const counts = new Map<string, Map<string, number>>()
  registry.registerMetric(
    new Counter({
      name: 'bff_upstream_requests_total',
      help: 'REST requests sent upstream, by catalog route and outcome',
      labelNames: ['route', 'outcome'],
      registers: [],
      collect() {
        this.reset()
        for (const [route, outcomes] of counts) {
          for (const [outcome, count] of outcomes) this.inc({ route, outcome }, count)
        }
      },
    }),
  )
  return {
    count(route: string, outcome: string): void {
      let outcomes = counts.get(route)
      if (outcomes === undefined) counts.set(route, (outcomes = new Map()))
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    },
  }
}

/** How many messages of browsers named each operation: plain numbers, for the same reason. */
function createRelayOperations(registry: Registry) {
  const counts = new Map<string, number>()
  registry.registerMetric(
    new Counter({
      name: 'bff_relay_operations_total',
      help: 'Messages from browsers by operation',
      labelNames: ['operation'],
      registers: [],
      collect() {
        this.reset()
        for (const [operation, count] of counts) this.inc({ operation }, count)
      },
    }),
  )
  return counts
}

/** The metrics of one server. */
export type Metrics = ReturnType<typeof createMetrics>
