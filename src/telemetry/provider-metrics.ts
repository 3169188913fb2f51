import { Counter, Histogram, type Registry } from 'prom-client'
import { scrapedGauge } from './scraped-metrics.ts'

const FLOWS = ['login', 'signup', 'unknown']
const REFUSALS = ['access_denied', 'invalid_grant', 'invalid_client', 'login_failed']
const LOGIN_OUTCOMES = [...REFUSALS, 'finished', 'state_mismatch', 'provider_unavailable', 'try_later', 'rate_limited']
const REFRESH_OUTCOMES = [...REFUSALS, 'granted', 'unavailable']

/** Counts logins by outcome. Without a series at 0, an alert on an increase would miss the first login. */
export function createLogins(registry: Registry): Counter<'flow' | 'outcome'> {
  const logins = new Counter({
    name: 'bff_logins_total',
    help:
      'Logins and sign-ups, by outcome: finished, or the auth_error that the page got; rate_limited instead of try_later if ' +
      'the limit of the address was the reason',
    labelNames: ['flow', 'outcome'],
    registers: [registry],
  })
  for (const flow of FLOWS) for (const outcome of LOGIN_OUTCOMES) logins.inc({ flow, outcome }, 0)
  return logins
}

/** Counts token refreshes by outcome. Every series starts at 0, too. */
export function createRefreshes(registry: Registry): Counter<'outcome'> {
  const refreshes = new Counter({
    name: 'bff_token_refreshes_total',
    help: 'Token refreshes, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  })
  for (const outcome of REFRESH_OUTCOMES) refreshes.inc({ outcome }, 0)
  return refreshes
}

/** Creates the metrics of requests to the provider. */
export function createProviderMetrics(registry: Registry, buckets: number[]) {
  const registers = [registry]
  const durations = new Histogram({
    name: 'bff_provider_request_duration_seconds',
    help:
      'From sending a request to the provider to the end of its response, or to its failure. The request is a push (of an ' +
      'authorization request), exchange, refresh or revoke',
    labelNames: ['request'],
    buckets,
    registers,
  })
  const outcomes = new Counter({
    name: 'bff_provider_requests_total',
    help:
      'Requests to the provider, by outcome: ok, refused (4xx), busy (429), failed (5xx, or an unusable response), timeout, ' +
      'unreachable, no_descriptor (this process has no file descriptor left)',
    labelNames: ['request', 'outcome'],
    registers,
  })
  const refreshSkipped = new Counter({
    name: 'bff_token_refreshes_held_back_total',
    help: 'Token refreshes that were not tried because one has just failed, for this session or for any (provider)',
    labelNames: ['by'],
    registers,
  })
  const metrics = {
    /** Whether refreshes are withheld because the provider fails. Replaced by the owner of the provider. */
    isCircuitOpen: () => false,
    asked(request: string, outcome: string, seconds: number): void {
      durations.observe({ request }, seconds)
      outcomes.inc({ request, outcome })
    },
    refreshSkipped: (by: 'session' | 'provider'): void => refreshSkipped.inc({ by }),
  }
  scrapedGauge(
    registry,
    'bff_provider_circuit_open',
    '1 while refreshes are withheld because the provider fails',
    () => Number(metrics.isCircuitOpen()),
    'max',
  )
  return metrics
}
