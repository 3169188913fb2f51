import type { Instruments } from './instruments.ts'

const FLOWS = ['login', 'signup', 'unknown']
const REFUSALS = ['access_denied', 'invalid_grant', 'invalid_client', 'login_failed']
const LOGIN_OUTCOMES = [...REFUSALS, 'finished', 'state_mismatch', 'provider_unavailable', 'try_later', 'rate_limited']
const REFRESH_OUTCOMES = [...REFUSALS, 'granted', 'unavailable']

/** Creates the metrics of logins, of refreshes, and of all requests to the provider. */
export function createProviderMetrics(make: Instruments, buckets: number[]) {
  return {
    logins: make.counterFrom0(
      'bff_logins_total',
      'Logins and sign-ups, by outcome: finished, or the auth_error that the page got; rate_limited instead of try_later if ' +
        'the limit of the address was the reason',
      FLOWS.flatMap((flow) => LOGIN_OUTCOMES.map((outcome) => ({ flow, outcome }))),
    ),
    refreshes: make.counterFrom0(
      'bff_token_refreshes_total',
      'Token refreshes, by outcome',
      REFRESH_OUTCOMES.map((outcome) => ({ outcome })),
    ),
    provider: createRequests(make, buckets),
  }
}

function createRequests(make: Instruments, buckets: number[]) {
  const durations = make.histogram(
    'bff_provider_request_duration_seconds',
    'From sending a request to the provider to the end of its response, or to its failure. The request is a push (of an ' +
      'authorization request), exchange, refresh or revoke',
    buckets,
    ['request'],
  )
  const outcomes = make.counter(
    'bff_provider_requests_total',
    'Requests to the provider, by outcome: ok, refused (4xx), busy (429), failed (5xx, or an unusable response), timeout, ' +
      'unreachable, no_descriptor (this process has no file descriptor left)',
    ['request', 'outcome'],
  )
  const refreshSkipped = make.counter(
    'bff_token_refreshes_held_back_total',
    'Token refreshes that were not tried because one has just failed, for this session or for any (provider)',
    ['by'],
  )
  const refusals = make.counter(
    'bff_provider_refuses_many_total',
    'Refused refreshes that may be trouble of the provider, by code: it has refused three users with that code within a minute, ' +
      'and has granted others nothing since. Nobody is logged out by these',
    ['code'],
  )
  const metrics = {
    /** Whether refreshes are withheld because the provider fails. Replaced by the owner of the provider. */
    isCircuitOpen: () => false,
    asked(request: string, outcome: string, seconds: number): void {
      durations.observe({ request }, seconds)
      outcomes.inc({ request, outcome })
    },
    refusesMany: (code: string): void => refusals.inc({ code }),
    refreshSkipped: (by: 'session' | 'provider'): void => refreshSkipped.inc({ by }),
  }
  make.scrapedGauge(
    'bff_provider_circuit_open',
    '1 while refreshes are withheld because the provider fails, even if only those of one user',
    () => Number(metrics.isCircuitOpen()),
    'max',
  )
  return metrics
}
