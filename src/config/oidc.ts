import { parseAuthorizationParams } from './authorization-params.ts'
import { isOn, splitList } from './setting-formats.ts'
import {
  flag,
  oneOf,
  problemsWhere,
  text,
  type SettingProblem,
  type SettingRule,
  type ValuesOf,
} from './setting-rule.ts'

/** Tells a worker that its supervisor has discovered the provider, which it names. It is set by no operator. */
export const DISCOVERED = 'SUPERVISOR_HAS_DISCOVERED'

/** Parameters of an authorization request that this server sets itself with OIDC, or that a login must not have. */
const RESERVED: ReadonlySet<string> = new Set(['nonce', 'id_token_hint'])

/** The settings of OpenID Connect. */
export const oidcRules = {
  OIDC: flag(
    false,
    'Whether logins are OpenID Connect: the provider tells whose they are. Needs DISCOVERY and openid in OAUTH_SCOPE',
  ),
  JWKS_URL: text("Address of the provider's keys (default: the discovered jwks_uri)", 'endpoint', 'https'),
  IDENTITY_CLAIMS: text(
    'Comma-separated claims of the ID token that pages may see, such as name,email; empty = none',
    'claims',
  ),
  END_SESSION_URL: text(
    'Where browsers log out at the provider (default: the discovered end_session_endpoint)',
    'endpoint',
    'https',
  ),
  ID_TOKEN_HINT: flag(
    false,
    'Whether the address of a logout at the provider carries the ID token, and with it the identity of the user',
  ),
  BACKCHANNEL_LOGOUT: flag(
    false,
    'Whether the provider may end sessions by POST /auth/backchannel-logout (OpenID Connect Back-Channel Logout)',
  ),
  BACKCHANNEL_FROM: text(
    "Addresses and CIDRs from which the provider's logouts come; they may send more invalid ones than others",
    'addresses',
  ),
  BACKCHANNEL_WITHOUT_SID: oneOf(
    'keep',
    ['keep', 'subject'],
    'What a logout of one session at the provider does to sessions of the subject that know no sid: subject ends them',
  ),
} as const satisfies Record<string, SettingRule>

type OidcSettings = ValuesOf<typeof oidcRules> & { readonly MAX_SESSIONS_PER_SUBJECT: number }

/** What OpenID Connect adds to a provider. */
export type OidcConfig = NonNullable<ReturnType<typeof oidcConfig>>

/** Reads the settings of OpenID Connect. Undefined where it is off. */
export function oidcConfig(settings: OidcSettings) {
  if (!isOn(settings.OIDC)) return undefined
  const { IDENTITY_CLAIMS, BACKCHANNEL_FROM, MAX_SESSIONS_PER_SUBJECT: maxSessions } = settings
  return {
    /** Undefined until the provider was discovered. */
    jwksUrl: settings.JWKS_URL,
    /** Undefined for a provider at which no browser can log out. */
    endSessionUrl: settings.END_SESSION_URL,
    /** Claims that pages may see. */
    claims: IDENTITY_CLAIMS === undefined ? [] : splitList(IDENTITY_CLAIMS),
    /** Whether the ID token is kept, as the hint of a logout. */
    keepsIdToken: isOn(settings.ID_TOKEN_HINT),
    /** Undefined where the provider cannot end sessions. */
    backchannel: isOn(settings.BACKCHANNEL_LOGOUT)
      ? { from: BACKCHANNEL_FROM === undefined ? [] : splitList(BACKCHANNEL_FROM) }
      : undefined,
    /** Whether a logout of one session at the provider ends the subject's sessions that know no sid. */
    endsWithoutSid: settings.BACKCHANNEL_WITHOUT_SID === 'subject',
    maxSessions: maxSessions === 0 ? Infinity : maxSessions,
  }
}

/**
 * Finds contradictions between the settings of OpenID Connect and others.
 * @param raw the settings as they were given
 */
export function oidcChecks(raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { OIDC = '', DISCOVERY = '', OAUTH_SCOPE = '', BACKCHANNEL_LOGOUT = '', AUTHORIZATION_PARAMS = '' } = raw
  if (!isOn(OIDC)) {
    const needsOidc = 'needs OIDC=true: without it no session can be ended by the provider'
    return problemsWhere([['BACKCHANNEL_LOGOUT', isOn(BACKCHANNEL_LOGOUT), needsOidc]])
  }
  const isDiscovered = isOn(DISCOVERY) || raw[DISCOVERED] !== undefined
  const parameters = parseAuthorizationParams(AUTHORIZATION_PARAMS) ?? []
  const taken = parameters.find(([name]) => RESERVED.has(name.toLowerCase()))
  return problemsWhere([
    ['OAUTH_SCOPE', !OAUTH_SCOPE.split(' ').includes('openid'), 'must have openid with OIDC=true'],
    ['DISCOVERY', !isDiscovered, 'must be true with OIDC=true: the metadata of the provider names its keys'],
    [
      'IDENTITY_PATH',
      raw['IDENTITY_PATH'] !== undefined,
      'must not be set together with OIDC=true: there would be two answers to whose a session is',
    ],
    ['AUTHORIZATION_PARAMS', taken !== undefined, 'must not have nonce or id_token_hint with OIDC=true'],
    [
      'AUTHORIZATION_PARAMS',
      parameters.some(([name, value]) => name === 'max_age' && !/^\d{1,9}$/.test(value)),
      'must have a whole number of seconds as max_age with OIDC=true',
    ],
  ])
}
