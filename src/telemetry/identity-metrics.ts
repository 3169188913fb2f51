import type { Registry } from 'prom-client'
import { Instruments } from './instruments.ts'

/** The outcome of a request to IDENTITY_PATH. */
export type IdentityOutcome = 'found' | 'refused' | 'unusable' | 'over_budget' | 'unreachable' | 'timeout' | 'lost'

/** Registers the metrics of subjects. Without IDENTITY_PATH they do not exist. */
export function createIdentityMetrics(registry: Registry) {
  return {
    requests: new Instruments(registry).counter(
      'bff_identity_requests_total',
      'Requests to IDENTITY_PATH after logins, by outcome: found, refused (another status than 2xx), unusable (no subject ' +
        'where IDENTITY_POINTER looks), over_budget, timeout, unreachable, lost. All but found leave the session without a subject',
      ['outcome'],
    ),
  }
}

/** The metrics of subjects. */
export type IdentityMetrics = ReturnType<typeof createIdentityMetrics>
