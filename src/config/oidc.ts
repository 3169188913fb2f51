import { formats } from './setting-formats.ts'
import {
  flag,
  mapped,
  oneOf,
  optional,
  problemsWhere,
  withDefault,
  type SettingProblem,
  type ValuesOf,
} from './setting-rule.ts'

/** Parameters of an authorization request that this server sets itself with OIDC, or that a login must not have. */
const RESERVED: ReadonlySet<string> = new Set(['nonce', 'id_token_hint'])

/** The settings of OpenID Connect. */
export const oidcSettings = {
  isOn: flag('OIDC', false).means(
    'Whether logins are OpenID Connect: the provider tells whose they are. Needs DISCOVERY and openid in OAUTH_SCOPE',
  ),
  jwksUrl: optional('JWKS_URL', formats.endpoint, 'https').means(
    "Address of the provider's keys (default: the discovered jwks_uri)",
  ),
  claims: optional('IDENTITY_CLAIMS', formats.claims).means(
    'Comma-separated claims of the ID token that pages may see, such as name,email; empty = none',
  ),
  endSessionUrl: optional('END_SESSION_URL', formats.endpoint, 'https').means(
    'Where browsers log out at the provider (default: the discovered end_session_endpoint)',
  ),
  keepsIdToken: flag('ID_TOKEN_HINT', false).means(
    'Whether the address of a logout at the provider carries the ID token, and with it the identity of the user',
  ),
  takesLogouts: flag('BACKCHANNEL_LOGOUT', false).means(
    'Whether the provider may end sessions by POST /auth/backchannel-logout (OpenID Connect Back-Channel Logout)',
  ),
  logoutsFrom: optional('BACKCHANNEL_FROM', formats.addresses).means(
    "Addresses and CIDRs from which the provider's logouts come; they may send more invalid ones than others",
  ),
  endsWithoutSid: withDefault(
    'BACKCHANNEL_WITHOUT_SID',
    'keep',
    mapped(oneOf('keep', 'subject'), (word) => word === 'subject'),
  ).means(
    'What a logout of one session at the provider does to sessions of the subject that know no sid: subject ends them',
  ),
}

type OidcValues = ValuesOf<typeof oidcSettings>

/** The part of a provider that only OpenID Connect needs. */
export type OidcConfig = NonNullable<ReturnType<typeof oidcConfig>>

/** Completes the settings of OpenID Connect. Undefined where it is off. */
export function oidcConfig(oidc: OidcValues, maxSessions: number) {
  if (!oidc.isOn) return undefined
  const { jwksUrl, endSessionUrl, claims = [], keepsIdToken, takesLogouts, logoutsFrom = [], endsWithoutSid } = oidc
  return {
    /** Undefined until the provider was discovered. */
    jwksUrl,
    /** Undefined for a provider at which no browser can log out. */
    endSessionUrl,
    /** Claims that pages may see. */
    claims,
    /** Whether the ID token is kept, as the hint of a logout. */
    keepsIdToken,
    /** Undefined where the provider cannot end sessions. */
    backchannel: takesLogouts ? { from: logoutsFrom } : undefined,
    /** Whether a logout of one session at the provider ends the subject's sessions that know no sid. */
    endsWithoutSid,
    maxSessions,
  }
}

/**
 * Finds contradictions between the settings of OpenID Connect and others.
 * @param raw the settings as they were given
 */
export function oidcChecks(
  oidc: Partial<OidcValues>,
  params: readonly (readonly [name: string, value: string])[],
  isDiscovered: boolean,
  raw: Readonly<Record<string, string>>,
): SettingProblem[] {
  if (oidc.isOn !== true) {
    const needsOidc = 'needs OIDC=true: without it no session can be ended by the provider'
    return problemsWhere([['BACKCHANNEL_LOGOUT', oidc.takesLogouts === true, needsOidc]])
  }
  const { OAUTH_SCOPE = '' } = raw
  return problemsWhere([
    ['OAUTH_SCOPE', !OAUTH_SCOPE.split(' ').includes('openid'), 'must have openid with OIDC=true'],
    ['DISCOVERY', !isDiscovered, 'must be true with OIDC=true: the metadata of the provider names its keys'],
    [
      'IDENTITY_PATH',
      raw['IDENTITY_PATH'] !== undefined,
      'must not be set together with OIDC=true: there would be two answers to whose a session is',
    ],
    [
      'AUTHORIZATION_PARAMS',
      params.some(([name]) => RESERVED.has(name.toLowerCase())),
      'must not have nonce or id_token_hint with OIDC=true',
    ],
    [
      'AUTHORIZATION_PARAMS',
      params.some(([name, value]) => name === 'max_age' && !/^\d{1,9}$/.test(value)),
      'must have a whole number of seconds as max_age with OIDC=true',
    ],
  ])
}
