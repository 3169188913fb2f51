import { hkdfSync } from 'node:crypto'
import { Counter, Gauge, type Registry } from 'prom-client'

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

/**
 * Tells instances that have other SESSION_SECRETS than the rest, and so log users out. The fingerprint leads back to
 * nothing, and does not depend on the order, which differs for a while when secrets are rotated.
 */
export function addSecretsInfo(registry: Registry, secrets: readonly string[]): void {
  const info = new Gauge({
    name: 'bff_session_secrets_info',
    help: 'A fingerprint of the set of SESSION_SECRETS: all instances should have the same',
    labelNames: ['fingerprint'],
    aggregator: 'first',
    registers: [registry],
  })
  const set = secrets.toSorted().join(',')
  const fingerprint = Buffer.from(hkdfSync('sha256', set, '', 'fingerprint', 6)).toString('hex')
  info.set({ fingerprint }, 1)
}
