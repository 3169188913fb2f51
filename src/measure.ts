import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Every metric there is. Label values come from closed sets: routes, codes, outcomes; never from a request. */
export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  return {
    registry,
    requests: new Histogram({
      name: 'bff_http_request_duration_seconds',
      help: 'Requests by route pattern and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    logins: new Counter({
      name: 'bff_logins_total',
      help: 'Finished login transactions by flow and outcome',
      labelNames: ['flow', 'outcome'],
      registers,
    }),
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
    refreshes: new Counter({
      name: 'bff_token_refreshes_total',
      help: 'Token refreshes by outcome',
      labelNames: ['outcome'],
      registers,
    }),
    upstreamRequests: new Counter({
      name: 'bff_upstream_requests_total',
      help: 'REST requests sent upstream, by catalog route and outcome',
      labelNames: ['route', 'outcome'],
      registers,
    }),
    relays: new Gauge({ name: 'bff_relays', help: 'Open relays by kind', labelNames: ['kind'], registers }),
    relayEndings: new Counter({
      name: 'bff_relay_endings_total',
      help: 'Relays ended and handshakes refused, by close code sent to the browser',
      labelNames: ['code'],
      registers,
    }),
    relayMessages: new Counter({
      name: 'bff_relay_messages_total',
      help: 'Messages relayed, by direction',
      labelNames: ['direction'],
      registers,
    }),
    relayOperations: new Counter({
      name: 'bff_relay_operations_total',
      help: 'Messages from browsers by operation',
      labelNames: ['operation'],
      registers,
    }),
  }
}

/** The metrics of one server. */
export type Metrics = ReturnType<typeof createMetrics>
