import { isInQuery, parseAuthorizationParams, type AuthorizationParam } from './authorization-params.ts'
import { parseClientKeys, type ClientKey } from './client-key.ts'
import type { CLIENT_AUTH_METHODS } from './provider-settings.ts'
import { isOn } from './setting-formats.ts'
import type { SettingProblem, Settings } from './settings.ts'

const PUBLIC_CLIENT =
  'CLIENT_AUTH is none: a public client, to which the provider gives tokens without proof of who asks. A backend-for-frontend must be a confidential client (RFC 10017): register it with a key or a secret (docs/providers.md)'

/** How this client authenticates with the provider. */
type ClientAuthMethod = (typeof CLIENT_AUTH_METHODS)[number]

/** Where the provider is and how this client talks to it. Only endpoints may have a query. */
export interface ProviderConfig {
  readonly authUrl: string
  /** What the `iss` of a callback must be, and the audience of client assertions. */
  readonly issuer: string
  /** False if AUTH_URL stands in for it, which has lost the slash that some issuers end with. */
  readonly isIssuerNamed: boolean
  /** Whether a callback must carry `iss`. */
  readonly issuerRequired: boolean
  readonly authorizationUrl: string
  readonly tokenUrl: string
  /** Where authorization requests are pushed, if they are. */
  readonly parUrl: string | undefined
  readonly revocationUrl: string | undefined
  readonly authorizationParams: readonly AuthorizationParam[]
  readonly clientId: string
  readonly clientAuth: ClientAuthMethod
  readonly clientSecret: string | undefined
  /** The first signs. */
  readonly clientKeys: readonly ClientKey[]
  /** The endpoints that have a setting, if the others must be discovered before the server starts. */
  readonly discovery: NamedEndpoints | undefined
}

/** The endpoints that the settings name. They take precedence over discovered ones. */
export interface NamedEndpoints {
  readonly authorizationUrl: string | undefined
  readonly tokenUrl: string | undefined
  readonly parUrl: string | undefined
  readonly revocationUrl: string | undefined
}

/** Reads the settings of the provider. */
export function providerConfig(settings: Settings): ProviderConfig {
  const { AUTHORIZATION_URL, TOKEN_URL, PAR_URL, REVOCATION_URL, ISSUER, CLIENT_SECRET } = settings
  const authUrl = settings.AUTH_URL.replace(/\/+$/, '')
  const named = {
    authorizationUrl: AUTHORIZATION_URL,
    tokenUrl: TOKEN_URL,
    parUrl: PAR_URL,
    revocationUrl: REVOCATION_URL,
  }
  return {
    authUrl,
    issuer: ISSUER ?? authUrl,
    isIssuerNamed: ISSUER !== undefined,
    issuerRequired: isOn(settings.ISSUER_REQUIRED),
    ...named,
    authorizationUrl: AUTHORIZATION_URL ?? `${authUrl}/oauth2/auth`,
    tokenUrl: TOKEN_URL ?? `${authUrl}/oauth2/token`,
    authorizationParams: parseAuthorizationParams(settings.AUTHORIZATION_PARAMS ?? '') ?? [],
    clientId: settings.CLIENT_ID,
    clientAuth: clientAuthOf(settings),
    clientSecret: CLIENT_SECRET,
    clientKeys: parseClientKeys(settings.CLIENT_KEY ?? '') ?? [],
    discovery: isOn(settings.DISCOVERY) ? named : undefined,
  }
}

/**
 * Finds contradictions between the settings of the provider.
 * @param raw the settings as they were given, so that a value that is wrong by itself is not reported as missing, too
 */
export function providerChecks(raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { CLIENT_AUTH, CLIENT_SECRET, CLIENT_KEY, ISSUER, AUTHORIZATION_URL = '', AUTHORIZATION_PARAMS = '' } = raw
  const problems: SettingProblem[] = []
  const isSecret = CLIENT_AUTH === 'client_secret_post' || CLIENT_AUTH === 'client_secret_basic'
  if (isSecret && CLIENT_SECRET === undefined) {
    problems.push({ setting: 'CLIENT_SECRET', message: `is required with CLIENT_AUTH=${CLIENT_AUTH}` })
  }
  if (CLIENT_AUTH === 'private_key_jwt' && CLIENT_KEY === undefined) {
    problems.push({ setting: 'CLIENT_KEY', message: 'is required with CLIENT_AUTH=private_key_jwt' })
  }
  if (CLIENT_KEY !== undefined && ISSUER === undefined) {
    const message = 'is required with CLIENT_KEY: it is the audience of what the key signs'
    problems.push({ setting: 'ISSUER', message })
  }
  if (isInQuery(AUTHORIZATION_URL, parseAuthorizationParams(AUTHORIZATION_PARAMS) ?? [])) {
    const message = 'must not repeat a parameter that AUTHORIZATION_URL has in its query'
    problems.push({ setting: 'AUTHORIZATION_PARAMS', message })
  }
  return problems
}

/** Returns warnings about credentials that are set and never used, and about a client in production that has none. */
export function providerWarnings(settings: Settings, inProduction: boolean): string[] {
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

function clientAuthOf({ CLIENT_AUTH, CLIENT_SECRET }: Settings): ClientAuthMethod {
  // The rule of the setting admits only these values.
  if (CLIENT_AUTH !== undefined) return CLIENT_AUTH as ClientAuthMethod
  return CLIENT_SECRET === undefined ? 'none' : 'client_secret_post'
}

/** The environment from which a worker reads this configuration of the provider, without the secrets. */
export function providerEnvironment(config: ProviderConfig): Record<string, string> {
  return {
    // The supervisor has discovered the endpoints already. An empty value counts as unset.
    DISCOVERY: '',
    AUTHORIZATION_URL: config.authorizationUrl,
    TOKEN_URL: config.tokenUrl,
    PAR_URL: config.parUrl ?? '',
    REVOCATION_URL: config.revocationUrl ?? '',
    ISSUER: config.isIssuerNamed ? config.issuer : '',
    ISSUER_REQUIRED: String(config.issuerRequired),
  }
}
