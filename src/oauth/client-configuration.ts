import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'

/** The options of openid-client that differ by the kind of request. */
interface RequestOptions {
  readonly authentication: client.ClientAuth
  readonly timeoutMs: number
  readonly fetch: client.CustomFetch
}

/** The configuration of openid-client for one kind of request to the provider. */
export function clientConfiguration(
  config: ProviderConfig,
  { authentication, timeoutMs, fetch }: RequestOptions,
): client.Configuration {
  const { issuer, issuerRequired, authorizationUrl, tokenUrl, parUrl, revocationUrl, clientId } = config
  const metadata: client.ServerMetadata = {
    issuer,
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    authorization_response_iss_parameter_supported: issuerRequired,
    ...(parUrl === undefined ? {} : { pushed_authorization_request_endpoint: parUrl }),
    ...(revocationUrl === undefined ? {} : { revocation_endpoint: revocationUrl }),
  }
  const configuration = new client.Configuration(metadata, clientId, undefined, authentication)
  configuration.timeout = timeoutMs / 1000
  if ([authorizationUrl, tokenUrl, parUrl, revocationUrl].some((url) => url !== undefined && isInsecure(url))) {
    // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
    client.allowInsecureRequests(configuration)
  }
  configuration[client.customFetch] = fetch
  return configuration
}

/** Whether requests to an address are not encrypted. The settings allow such addresses only outside production. */
export function isInsecure(url: string): boolean {
  return url.toLowerCase().startsWith('http:')
}

/**
 * Whether an `iss` is that of the provider. RFC 9207 §2.4 compares it exactly, but AUTH_URL is stored without the trailing
 * slash that some issuers have.
 */
export function isIssuer({ issuer, isIssuerNamed }: ProviderConfig, received: unknown): boolean {
  return received === issuer || (!isIssuerNamed && received === `${issuer}/`)
}
