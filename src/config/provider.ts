import { isInQuery, parseAuthorizationParams } from './authorization-params.ts'
import { changeable } from './changing.ts'
import { parseClientKeys } from './client-key.ts'
import { oidcConfig, type oidcRules } from './oidc.ts'
import { isOn } from './setting-formats.ts'
import {
  flag,
  problemsWhere,
  text,
  textOr,
  type SettingProblem,
  type SettingRule,
  type ValuesOf,
} from './setting-rule.ts'

const PUBLIC_CLIENT =
  'CLIENT_AUTH is none: a public client, to which the provider gives tokens without proof of who asks. A backend-for-frontend must be a confidential client (RFC 10017): register it with a key or a secret (docs/providers.md)'

/** How the token endpoint may learn that a request is this client's (RFC 7591 §2, token_endpoint_auth_method). */
const CLIENT_AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'] as const

/** Tells a worker which endpoints its supervisor has discovered. It is set by no operator. */
export const DISCOVERED_ENDPOINTS = 'SUPERVISOR_DISCOVERED_ENDPOINTS'

/** The settings of the OAuth 2.0 provider, beside AUTH_URL and CLIENT_ID. */
export const providerRules = {
  CLIENT_AUTH: {
    kind: 'text',
    choices: CLIENT_AUTH_METHODS,
    description:
      'How this client authenticates with the provider (default: client_secret_post if CLIENT_SECRET is set, else none)',
  },
  CLIENT_SECRET: text('Client secret, only for a confidential client', 'printable'),
  CLIENT_KEY: text(
    'Private key of private_key_jwt as PEM or JWK; two to rotate: the first signs. Needs ISSUER',
    'clientKeys',
  ),
  OAUTH_SCOPE: textOr('trade account_manage', 'scope', 'Space-separated OAuth scopes to request'),
  LEGACY_APP_ID: text('app_id of an application on the legacy API, sent to the provider', 'printable'),
  AUTHORIZATION_PARAMS: text(
    'Query parameters that are added to every authorization request, for example audience=api; prompt is added to logins only',
    'authorizationParams',
  ),
  AUTHORIZATION_URL: text('Authorization endpoint (default: AUTH_URL + /oauth2/auth)', 'endpoint', 'https'),
  TOKEN_URL: text(
    'Token endpoint, which may be an inside address (default: AUTH_URL + /oauth2/token)',
    'endpoint',
    'https',
  ),
  PAR_URL: text('Endpoint to which authorization requests are pushed (RFC 9126)', 'endpoint', 'https'),
  REVOCATION_URL: text('Token revocation endpoint, called at logout', 'endpoint', 'https'),
  ISSUER: text("The provider's issuer identifier, to the letter (default: AUTH_URL)", 'httpUrl', 'https'),
  ISSUER_REQUIRED: flag(false, 'Whether a callback without iss (RFC 9207) is refused'),
  DISCOVERY: flag(
    false,
    "Whether the endpoints are read at the start from the issuer's metadata (RFC 8414, OpenID Connect Discovery)",
  ),
} as const satisfies Record<string, SettingRule>

type ProviderSettings = ValuesOf<typeof providerRules> &
  ValuesOf<typeof oidcRules> & {
    readonly AUTH_URL: string
    readonly CLIENT_ID: string
    readonly MAX_SESSIONS_PER_SUBJECT: number
  }

/** How this client authenticates with the provider. */
type ClientAuthMethod = (typeof CLIENT_AUTH_METHODS)[number]

/** Where the provider is and how this client talks to it. Only endpoints may have a query. */
export type ProviderConfig = ReturnType<typeof providerConfig>

/** The endpoints that the settings name. They take precedence over discovered ones. */
export type NamedEndpoints = ReturnType<typeof namedEndpoints>

/** An address that the provider's metadata may name, and that this server asks. */
export type DiscoveredEndpoint = keyof NamedEndpoints | 'jwksUrl'

/** Reads the settings of the provider. @param discovered the value of {@link DISCOVERED_ENDPOINTS} */
export function providerConfig(settings: ProviderSettings, discovered = '') {
  const { ISSUER } = settings
  const authUrl = settings.AUTH_URL.replace(/\/+$/, '')
  const named = namedEndpoints(settings)
  return {
    authUrl,
    /** What the `iss` of a callback must be, and the audience of client assertions. */
    issuer: ISSUER ?? authUrl,
    /** False if AUTH_URL stands in for it, which has lost the slash that some issuers end with. */
    isIssuerNamed: ISSUER !== undefined,
    /** Whether a callback must carry `iss`. */
    issuerRequired: isOn(settings.ISSUER_REQUIRED),
    ...named,
    authorizationUrl: named.authorizationUrl ?? `${authUrl}/oauth2/auth`,
    tokenUrl: named.tokenUrl ?? `${authUrl}/oauth2/token`,
    authorizationParams: parseAuthorizationParams(settings.AUTHORIZATION_PARAMS ?? '') ?? [],
    clientId: settings.CLIENT_ID,
    clientAuth: clientAuthOf(settings),
    clientSecret: changeable(settings.CLIENT_SECRET),
    /** The first signs. */
    clientKeys: changeable(parseClientKeys(settings.CLIENT_KEY ?? '')),
    /** The endpoints that have a setting, if the others must be discovered before the server starts. */
    discovery: isOn(settings.DISCOVERY) ? named : undefined,
    /** The endpoints that were discovered, in this process or in its supervisor. */
    discovered: discovered.split(',').filter((name): name is DiscoveredEndpoint => name in named || name === 'jwksUrl'),
    /** Undefined unless logins are OpenID Connect. */
    oidc: oidcConfig(settings),
  }
}

function namedEndpoints(settings: ProviderSettings) {
  return {
    authorizationUrl: settings.AUTHORIZATION_URL,
    tokenUrl: settings.TOKEN_URL,
    /** Where authorization requests are pushed, if they are. */
    parUrl: settings.PAR_URL,
    revocationUrl: settings.REVOCATION_URL,
  }
}

/**
 * Finds contradictions between the settings of the provider.
 * @param raw the settings as they were given, so that a value that is wrong by itself is not reported as missing, too
 */
export function providerChecks(raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { CLIENT_AUTH, CLIENT_SECRET, CLIENT_KEY, ISSUER, AUTHORIZATION_URL = '', AUTHORIZATION_PARAMS = '' } = raw
  const isSecret = CLIENT_AUTH === 'client_secret_post' || CLIENT_AUTH === 'client_secret_basic'
  return problemsWhere([
    ['CLIENT_SECRET', isSecret && CLIENT_SECRET === undefined, `is required with CLIENT_AUTH=${CLIENT_AUTH}`],
    [
      'CLIENT_KEY',
      CLIENT_AUTH === 'private_key_jwt' && CLIENT_KEY === undefined,
      'is required with CLIENT_AUTH=private_key_jwt',
    ],
    [
      'ISSUER',
      CLIENT_KEY !== undefined && ISSUER === undefined,
      'is required with CLIENT_KEY: it is the audience of what the key signs',
    ],
    [
      'AUTHORIZATION_PARAMS',
      isInQuery(AUTHORIZATION_URL, parseAuthorizationParams(AUTHORIZATION_PARAMS) ?? []),
      'must not repeat a parameter that AUTHORIZATION_URL has in its query',
    ],
  ])
}

/** Returns warnings about credentials that are set and never used, and about a client in production that has none. */
export function providerWarnings(settings: ProviderSettings, inProduction: boolean): string[] {
  const method = clientAuthOf(settings)
  const warnings: string[] = []
  if (inProduction && method === 'none') warnings.push(PUBLIC_CLIENT)
  if (settings.CLIENT_SECRET !== undefined && !method.startsWith('client_secret')) {
    warnings.push(`CLIENT_SECRET is not used with CLIENT_AUTH=${method}`)
  }
  if (settings.CLIENT_KEY !== undefined && method !== 'private_key_jwt') {
    warnings.push(`CLIENT_KEY is not used with CLIENT_AUTH=${method}`)
  }
  return warnings
}

function clientAuthOf({ CLIENT_AUTH, CLIENT_SECRET }: ProviderSettings): ClientAuthMethod {
  // The rule of the setting admits only these values.
  if (CLIENT_AUTH !== undefined) return CLIENT_AUTH as ClientAuthMethod
  return CLIENT_SECRET === undefined ? 'none' : 'client_secret_post'
}
