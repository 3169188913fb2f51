import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

const FLOWS = ['login', 'signup', 'unknown']
const REFUSALS = ['access_denied', 'invalid_grant', 'invalid_client', 'login_failed']
const LOGIN_OUTCOMES = [
  ...REFUSALS,
  'finished',
  'state_mismatch',
  'provider_unavailable',
  'try_later',
  'rate_limited',
]
const REFRESH_OUTCOMES = [...REFUSALS, 'granted', 'unavailable']

/** Logins by outcome. All begin at 0, or an alert on their growth would miss the first. */
export function createLogins(registry: Registry): Counter<'flow' | 'outcome'> {
  const logins = new Counter({
    name: 'bff_logins_total',
    help: 'Finished login transactions by flow and outcome',
    labelNames: ['flow', 'outcome'],
    registers: [registry],
  })
  for (const flow of FLOWS) for (const outcome of LOGIN_OUTCOMES) logins.inc({ flow, outcome }, 0)
  return logins
}

/** Refreshes by outcome, from 0 as well. */
export function createRefreshes(registry: Registry): Counter<'outcome'> {
  const refreshes = new Counter({
    name: 'bff_token_refreshes_total',
    help: 'Token refreshes by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  })
  for (const outcome of REFRESH_OUTCOMES) refreshes.inc({ outcome }, 0)
  return refreshes
}

/** What the provider was asked, how it answered, and whether refreshes are held back because it fails. */
export function createProviderMetrics(registry: Registry, buckets: number[]) {
  const registers = [registry]
  const durations = new Histogram({
    name: 'bff_provider_request_duration_seconds',
    help: 'From sending a request to the provider to the end of its response, or to its failure',
    labelNames: ['request'],
    buckets,
    registers,
  })
  const outcomes = new Counter({
    name: 'bff_provider_requests_total',
    help: 'Requests sent to the provider, by how they ended',
    labelNames: ['request', 'outcome'],
    registers,
  })
  const refreshSkipped = new Counter({
    name: 'bff_token_refreshes_held_back_total',
    help: 'Token refreshes that were not tried because one has just failed: of this session, or of any (provider)',
    labelNames: ['by'],
    registers,
  })
  const metrics = {
    /** Read only when somebody asks for the metrics; whoever has the provider puts the answer here. */
    isCircuitOpen: () => false,
    asked(request: string, outcome: string, seconds: number): void {
      durations.observe({ request }, seconds)
      outcomes.inc({ request, outcome })
    },
    refreshSkipped: (by: 'session' | 'provider'): void => refreshSkipped.inc({ by }),
  }
  registry.registerMetric(
    new Gauge({
      name: 'bff_provider_circuit_open',
      help: 'Whether refreshes are held back because the provider fails',
      // Of several processes, the one that holds them back tells.
      aggregator: 'max',
      registers: [],
      collect() {
        this.set(Number(metrics.isCircuitOpen()))
      },
    }),
  )
  return metrics
}
