import { isInQuery } from './authorization-params.ts'
import { oidcConfig, type oidcSettings } from './oidc.ts'
import { formats } from './setting-formats.ts'
import {
  changing,
  flag,
  oneOf,
  optional,
  problemsWhere,
  required,
  seconds,
  whole,
  withDefault,
  type SettingProblem,
  type ValuesOf,
} from './setting-rule.ts'

const DAY = 86_400
const PUBLIC_CLIENT =
  'CLIENT_AUTH is none: a public client, to which the provider gives tokens without proof of who asks. A backend-for-frontend must be a confidential client (RFC 10017): register it with a key or a secret (docs/providers.md)'

/** The settings of the OAuth 2.0 provider, and of logins with it. */
export const providerSettings = {
  authUrl: required('AUTH_URL', formats.httpBase, 'https').means('Base address of the OAuth 2.0 provider'),
  clientId: required('CLIENT_ID', formats.printable).means('Client id registered with the provider'),
  /** How the token endpoint may learn that a request is this client's (RFC 7591 §2, token_endpoint_auth_method). */
  clientAuth: optional(
    'CLIENT_AUTH',
    oneOf('none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'),
  ).means(
    'How this client authenticates with the provider (default: client_secret_post if CLIENT_SECRET is set, else none)',
  ),
  clientSecret: optional('CLIENT_SECRET', changing(formats.printable)).means(
    'Client secret, only for a confidential client',
  ),
  clientKeys: optional('CLIENT_KEY', changing(formats.clientKeys)).means(
    'Private key of private_key_jwt as PEM or JWK; two to rotate: the first signs. Needs ISSUER',
  ),
  scope: withDefault('OAUTH_SCOPE', 'trade account_manage', formats.scope).means(
    'Space-separated OAuth scopes to request',
  ),
  legacyAppId: optional('LEGACY_APP_ID', formats.printable).means(
    'app_id of an application on the legacy API, sent to the provider',
  ),
  authorizationParams: optional('AUTHORIZATION_PARAMS', formats.authorizationParams).means(
    'Query parameters that are added to every authorization request, for example audience=api; prompt is added to logins only',
  ),
  authorizationUrl: optional('AUTHORIZATION_URL', formats.endpoint, 'https').means(
    'Authorization endpoint (default: AUTH_URL + /oauth2/auth)',
  ),
  tokenUrl: optional('TOKEN_URL', formats.endpoint, 'https').means(
    'Token endpoint, which may be an inside address (default: AUTH_URL + /oauth2/token)',
  ),
  parUrl: optional('PAR_URL', formats.endpoint, 'https').means(
    'Endpoint to which authorization requests are pushed (RFC 9126)',
  ),
  revocationUrl: optional('REVOCATION_URL', formats.endpoint, 'https').means(
    'Token revocation endpoint, called at logout',
  ),
  issuer: optional('ISSUER', formats.httpUrl, 'https').means(
    "The provider's issuer identifier, to the letter (default: AUTH_URL)",
  ),
  issuerRequired: flag('ISSUER_REQUIRED', false).means('Whether a callback without iss (RFC 9207) is refused'),
  discovery: flag('DISCOVERY', false).means(
    "Whether the endpoints are read at the start from the issuer's metadata (RFC 8414, OpenID Connect Discovery)",
  ),
  frontendUrl: optional('FRONTEND_URL', formats.origin, 'https').means(
    'Origin the browser returns to after a login (default: PUBLIC_URL)',
  ),
  loginTtlMs: seconds('LOGIN_TTL_SECONDS', 3600, [1, DAY]).means('How long a started login may take'),
  tokenFallbackMs: seconds('TOKEN_FALLBACK_SECONDS', 3600, [1, 30 * DAY]).means(
    'Token lifetime when the provider names no usable one',
  ),
  attributionTtlMs: seconds('ATTRIBUTION_TTL_SECONDS', DAY, [0, 365 * DAY]).means(
    'How long a partner link is remembered; 0 = not at all',
  ),
  startsPerMinute: whole('AUTH_STARTS_PER_MINUTE', 30, [0, 1_000_000]).means(
    'Logins and sign-ups that one client address (IPv6: /64) may start in a minute; 0 = no limit',
  ),
}

type ProviderValues = ValuesOf<typeof providerSettings>

/** Where the provider is, and how this client talks to it and lets users log in. Only endpoints may have a query. */
export type ProviderConfig = ReturnType<typeof providerConfig>

/** The endpoints that the settings name. They take precedence over discovered ones. */
export type NamedEndpoints = ReturnType<typeof namedEndpoints>

/** An address that the provider's metadata may name, and that this server asks. */
export type DiscoveredEndpoint = keyof NamedEndpoints | 'jwksUrl'

/**
 * Completes the settings of the provider.
 * @param discovered the endpoints that the supervisor of this worker has discovered, separated by commas
 */
export function providerConfig(
  provider: ProviderValues,
  oidc: ValuesOf<typeof oidcSettings>,
  publicUrl: string,
  { maxSessions, discovered = '' }: { readonly maxSessions: number; readonly discovered: string | undefined },
) {
  const { authUrl, issuer, frontendUrl = publicUrl } = provider
  const named = namedEndpoints(provider)
  return {
    ...provider,
    /** A callback must have it as `iss`, and it is the audience of client assertions. */
    issuer: issuer ?? authUrl,
    /** False if AUTH_URL stands in for it, which has lost the slash that some issuers end with. */
    isIssuerNamed: issuer !== undefined,
    authorizationUrl: named.authorizationUrl ?? `${authUrl}/oauth2/auth`,
    tokenUrl: named.tokenUrl ?? `${authUrl}/oauth2/token`,
    authorizationParams: provider.authorizationParams ?? [],
    clientAuth: clientAuthOf(provider),
    /** The endpoints that have a setting, if the others must be discovered before the server starts. */
    discovery: provider.discovery ? named : undefined,
    /** The endpoints that were discovered, in this process or in its supervisor. */
    discovered: discovered.split(',').filter((name): name is DiscoveredEndpoint => name in named || name === 'jwksUrl'),
    /** Undefined unless logins are OpenID Connect. */
    oidc: oidcConfig(oidc, maxSessions),
    redirectUri: `${publicUrl}/auth/callback`,
    frontendUrl,
  }
}

function namedEndpoints({ authorizationUrl, tokenUrl, parUrl, revocationUrl }: ProviderValues) {
  return { authorizationUrl, tokenUrl, parUrl, revocationUrl }
}

/**
 * Finds contradictions between the settings of the provider.
 * @param raw the settings as they were given, so that a value that is wrong by itself is not reported as missing, too
 */
export function providerChecks(
  { clientAuth, authorizationParams = [] }: Partial<ProviderValues>,
  raw: Readonly<Record<string, string>>,
): SettingProblem[] {
  const isSecret = clientAuth === 'client_secret_post' || clientAuth === 'client_secret_basic'
  const hasKey = raw['CLIENT_KEY'] !== undefined
  const needsKey = clientAuth === 'private_key_jwt'
  return problemsWhere([
    ['CLIENT_SECRET', isSecret && raw['CLIENT_SECRET'] === undefined, `is required with CLIENT_AUTH=${clientAuth}`],
    ['CLIENT_KEY', needsKey && !hasKey, 'is required with CLIENT_AUTH=private_key_jwt'],
    [
      'ISSUER',
      (needsKey || hasKey) && raw['ISSUER'] === undefined,
      'is required with CLIENT_KEY: it is the audience of what the key signs',
    ],
    [
      'AUTHORIZATION_PARAMS',
      isInQuery(raw['AUTHORIZATION_URL'] ?? '', authorizationParams),
      'must not repeat a parameter that AUTHORIZATION_URL has in its query',
    ],
  ])
}

/** Returns warnings about credentials that are set and never used, and about a client in production that has none. */
export function providerWarnings(provider: ProviderConfig, inProduction: boolean): string[] {
  const { clientAuth, clientSecret, clientKeys } = provider
  const warnings: string[] = []
  if (inProduction && clientAuth === 'none') warnings.push(PUBLIC_CLIENT)
  if (clientSecret !== undefined && !clientAuth.startsWith('client_secret')) {
    warnings.push(`CLIENT_SECRET is not used with CLIENT_AUTH=${clientAuth}`)
  }
  if (clientKeys !== undefined && clientAuth !== 'private_key_jwt') {
    warnings.push(`CLIENT_KEY is not used with CLIENT_AUTH=${clientAuth}`)
  }
  return warnings
}

function clientAuthOf({ clientAuth, clientSecret }: ProviderValues) {
  return clientAuth ?? (clientSecret === undefined ? 'none' : 'client_secret_post')
}
