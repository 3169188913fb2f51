import type { ServerMetadata } from 'openid-client'
import { isInQuery } from '../config/authorization-params.ts'
import type { DiscoveredEndpoint, NamedEndpoints, ProviderConfig } from '../config/provider.ts'
import { formats } from '../config/setting-formats.ts'

/** The setting that takes precedence over each endpoint of the metadata. */
const SETTINGS = {
  authorization_endpoint: ['AUTHORIZATION_URL', 'authorizationUrl'],
  token_endpoint: ['TOKEN_URL', 'tokenUrl'],
  pushed_authorization_request_endpoint: ['PAR_URL', 'parUrl'],
  revocation_endpoint: ['REVOCATION_URL', 'revocationUrl'],
  // oidcOf() looks at END_SESSION_URL.
  end_session_endpoint: ['END_SESSION_URL'],
} as const satisfies Record<string, readonly [setting: string, name?: keyof NamedEndpoints]>

/** A complete configuration of the provider. `warnings` are for the operator. */
export interface DiscoveredProvider {
  readonly provider: ProviderConfig
  readonly warnings: readonly string[]
}

type Endpoint = keyof typeof SETTINGS

/** The response is not the issuer's metadata. The message completes a sentence that starts with “ISSUER”. */
export class DocumentFault extends Error {
  /** Whether the metadata may be at another address of the issuer. The message is then a sentence of its own. */
  readonly isElsewhere: boolean

  constructor(message: string, isElsewhere = false) {
    super(message)
    this.name = 'DocumentFault'
    this.isElsewhere = isElsewhere
  }
}

/**
 * Completes the configuration of the provider with its metadata (RFC 8414 §2). An endpoint that the settings name is not
 * replaced.
 * @throws DocumentFault if an endpoint is missing or may not be used, or if the provider cannot do what this client needs
 */
export function endpointsOf(metadata: ServerMetadata, config: ProviderConfig): DiscoveredProvider {
  const { code_challenge_methods_supported: challenges } = metadata
  if (Array.isArray(challenges) && !challenges.includes('S256')) {
    throw new DocumentFault('is a provider without PKCE by S256 (code_challenge_methods_supported)')
  }
  if (metadata.require_signed_request_object === true) {
    throw new DocumentFault(
      'is a provider that demands signed request objects (require_signed_request_object), which this server does not make',
    )
  }
  const read = (endpoint: Endpoint): string | undefined => endpointOf(endpoint, metadata, config)
  const demand = (endpoint: Endpoint): string => {
    const url = read(endpoint)
    if (url !== undefined) return url
    throw new DocumentFault(`has metadata without ${endpoint}: name it in ${SETTINGS[endpoint][0]}`)
  }
  // A login should not depend on another request without need.
  const isPushRequired = metadata.require_pushed_authorization_requests === true
  const provider: ProviderConfig = {
    ...config,
    issuer: metadata.issuer,
    isIssuerNamed: true,
    issuerRequired: config.issuerRequired || metadata.authorization_response_iss_parameter_supported === true,
    authorizationUrl: demand('authorization_endpoint'),
    tokenUrl: demand('token_endpoint'),
    parUrl: isPushRequired ? demand('pushed_authorization_request_endpoint') : config.discovery?.parUrl,
    revocationUrl: read('revocation_endpoint'),
    discovery: undefined,
    discovered: [],
    oidc: oidcOf(metadata, config),
  }
  const names = ['authorizationUrl', 'tokenUrl', 'parUrl', 'revocationUrl'] as const
  const discovered: DiscoveredEndpoint[] = names.filter(
    (name) => config.discovery?.[name] === undefined && provider[name] !== undefined,
  )
  if (config.oidc !== undefined && config.oidc.jwksUrl === undefined) discovered.push('jwksUrl')
  if (isInQuery(provider.authorizationUrl, config.authorizationParams)) {
    throw new DocumentFault(
      'has metadata whose authorization_endpoint has a parameter of AUTHORIZATION_PARAMS in its query',
    )
  }
  return { provider: { ...provider, discovered }, warnings: authenticationWarnings(metadata, config) }
}

/** An endpoint as the settings or else the metadata name it. */
function endpointOf(endpoint: Endpoint, metadata: ServerMetadata, config: ProviderConfig): string | undefined {
  const [setting, name]: readonly [string, (keyof NamedEndpoints)?] = SETTINGS[endpoint]
  const named = name === undefined ? undefined : config.discovery?.[name]
  if (named !== undefined) return named
  const url: unknown = metadata[endpoint]
  if (url === undefined || url === null) return undefined
  if (typeof url !== 'string' || formats.endpoint.parse(url) === undefined) {
    throw new DocumentFault(`has metadata whose ${endpoint} is not ${formats.endpoint.must}`)
  }
  // Otherwise the metadata could send codes, tokens and secrets to any host that this server can reach.
  const { origin } = new URL(url)
  const origins = [config.issuer, config.authUrl].map((address) => new URL(address).origin)
  if (origins.includes(origin)) return url
  throw new DocumentFault(
    `has metadata whose ${endpoint} is on another host (${origin}): if it is right, name it in ${setting}`,
  )
}

/** Adds the metadata to the settings of OpenID Connect (Discovery §3, RP-Initiated Logout §2.1). */
function oidcOf(metadata: ServerMetadata, config: ProviderConfig): ProviderConfig['oidc'] {
  const { oidc, issuer } = config
  if (oidc === undefined) return undefined
  // Every subject begins with the issuer, and the length of a subject is limited.
  if (metadata.issuer.length > 200) throw new DocumentFault('must have at most 200 characters with OIDC=true')
  const jwksUrl = oidc.jwksUrl ?? metadata.jwks_uri
  if (jwksUrl === undefined) throw new DocumentFault('has metadata without jwks_uri: name it in JWKS_URL')
  // Keys are public, so they may be on any host, of a content network for instance. Who could change them on the way could log
  // in as anybody.
  const isSafe = typeof jwksUrl === 'string' && formats.endpoint.parse(jwksUrl) !== undefined
  if (!isSafe || (!/^https:/i.test(jwksUrl) && /^https:/i.test(issuer))) {
    throw new DocumentFault('has metadata whose jwks_uri is not an https address: name it in JWKS_URL')
  }
  const endSessionUrl = oidc.endSessionUrl ?? endpointOf('end_session_endpoint', metadata, config)
  return { ...oidc, jwksUrl, endSessionUrl }
}

function authenticationWarnings(metadata: ServerMetadata, { clientAuth, clientKeys }: ProviderConfig): string[] {
  const {
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: algorithms,
  } = metadata
  const wanted: [setting: string, value: string, offered: unknown][] = [['CLIENT_AUTH', clientAuth, methods]]
  for (const { id, algorithm } of clientAuth === 'private_key_jwt' ? (clientKeys?.current ?? []) : []) {
    wanted.push([`The algorithm of CLIENT_KEY ${id}`, algorithm, algorithms])
  }
  return wanted.flatMap(([setting, value, offered]) => {
    if (!Array.isArray(offered) || offered.includes(value)) return []
    const shown = offered.filter((name) => /^\w{1,64}$/.test(String(name))).join(', ')
    return [`${setting} is ${value}, but the metadata of the provider offers only: ${shown}`]
  })
}
