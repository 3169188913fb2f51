import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'
import { isInsecure } from './client-configuration.ts'
import { DocumentFault, MetadataRequests } from './metadata-requests.ts'
import { endpointsOf, type DiscoveredProvider } from './discovered-endpoints.ts'
import { UnusableResponse } from './provider-response.ts'
import { PROVIDER_TIMEOUT_MS } from './provider-traffic.ts'

/** The outcome of a discovery. */
export type Discovery =
  | ({ readonly is: 'found' } & DiscoveredProvider)
  /** Trying again would not help. `message` completes a sentence that starts with “ISSUER”. */
  | { readonly is: 'refused'; readonly message: string }
  /** The issuer cannot be reached, or does not work at the moment. */
  | { readonly is: 'away'; readonly cause: unknown }

/**
 * Where the metadata may be, in the order of trying: OpenID Connect Discovery, since most providers have it, and
 * RFC 8414.
 */
const ALGORITHMS = ['oidc', 'oauth2'] as const

/**
 * Asks the issuer once for its metadata (RFC 8414 §3), and completes the configuration of the provider with it. Only the
 * issuer's host is asked, and only it and AUTH_URL's may be named as endpoints.
 * @param timeoutMs of each request, including the response body
 */
export async function discover(config: ProviderConfig, timeoutMs = PROVIDER_TIMEOUT_MS): Promise<Discovery> {
  const requests = new MetadataRequests(config)
  try {
    const missing: string[] = []
    for (const algorithm of ALGORITHMS) {
      const outcome = await attempt(config, algorithm, { requests, timeoutMs })
      if (outcome.is !== 'missing') return outcome
      missing.push(outcome.message)
    }
    return { is: 'refused', message: `must be an issuer with metadata: ${missing.join('; ')}` }
  } finally {
    await requests.close()
  }
}

/** `missing`: there is no metadata at this place, but there may be at the other one. `message` is a sentence. */
async function attempt(
  config: ProviderConfig,
  algorithm: (typeof ALGORITHMS)[number],
  { requests, timeoutMs }: { readonly requests: MetadataRequests; readonly timeoutMs: number },
): Promise<Discovery | { readonly is: 'missing'; readonly message: string }> {
  try {
    const found = await client.discovery(new URL(config.issuer), config.clientId, undefined, client.None(), {
      algorithm,
      timeout: timeoutMs / 1000,
      [client.customFetch]: (url, options) => requests.fetch(url, options),
      // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
      execute: isInsecure(config.issuer) ? [client.allowInsecureRequests] : [],
    })
    return { is: 'found', ...endpointsOf(found.serverMetadata(), config) }
  } catch (error) {
    const fault = faultOf(error)
    if (fault === undefined) return { is: 'away', cause: innerFailure(error) }
    return { is: fault.isElsewhere ? 'missing' : 'refused', message: fault.message }
  }
}

/** openid-client wraps what its fetch() throws, and says nothing more about it. */
function innerFailure(error: unknown): unknown {
  return error instanceof client.ClientError && error.cause instanceof UnusableResponse ? error.cause : error
}

/** The fault of a document, which openid-client wraps. */
function faultOf(error: unknown): DocumentFault | undefined {
  if (error instanceof DocumentFault) return error
  if (!(error instanceof client.ClientError)) return undefined
  if (error.cause instanceof DocumentFault) return error.cause
  // Everything that openid-client finds wrong with the document itself. Its text names no value.
  return error.code === 'OAUTH_TIMEOUT' || error.code === undefined
    ? undefined
    : new DocumentFault(`has unusable metadata: ${error.message}`)
}
