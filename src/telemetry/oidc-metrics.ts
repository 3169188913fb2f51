import type { Registry } from 'prom-client'
import { Instruments } from './instruments.ts'

const LOGOUTS = ['ended', 'false', 'limited', 'keys_away', 'store_away'] as const

/** Registers the metrics of OpenID Connect. Without OIDC they do not exist. */
export function createOidcMetrics(registry: Registry) {
  const make = new Instruments(registry)
  return {
    claimsLeftOut: make.counterFrom0(
      'bff_identity_claims_left_out_total',
      'Claims of IDENTITY_CLAIMS that a login has had and its page does not see, because of their size, or of a type other than text, number and boolean',
      [{ why: 'size' }, { why: 'type' }],
    ),
    logouts: make.counterFrom0(
      'bff_backchannel_logouts_total',
      'Requests of the provider, or of strangers, to /auth/backchannel-logout, by outcome: ended (valid, whether or not there was a ' +
        'session), false, limited (429), keys_away, store_away (both 503)',
      LOGOUTS.map((outcome) => ({ outcome })),
    ),
  }
}

/** The metrics of OpenID Connect. */
export type OidcMetrics = ReturnType<typeof createOidcMetrics>
/** The outcome of a request to /auth/backchannel-logout. */
export type LogoutOutcome = (typeof LOGOUTS)[number]
