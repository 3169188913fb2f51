import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'
import { parsedObject } from '../http/parsed-object.ts'
import { DocumentFault, endpointsOf, type DiscoveredProvider } from './discovered-endpoints.ts'
import { isIssuer } from './provider.ts'
import { ProviderConnections } from './provider-connections.ts'
import { boundedText, UnusableResponse, type RawResponse } from './provider-response.ts'
import { isInsecure, PROVIDER_TIMEOUT_MS } from './provider-traffic.ts'

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
const MAX_SHOWN = 200

/**
 * Asks the issuer once for its metadata (RFC 8414 §3), and completes the configuration of the provider with it. Only the
 * issuer's host is asked, and only it and AUTH_URL's may be named as endpoints.
 * @param timeoutMs of each request, including the response body
 */
export async function discover(config: ProviderConfig, timeoutMs = PROVIDER_TIMEOUT_MS): Promise<Discovery> {
  const connections = new ProviderConnections(config.issuer)
  const fetch: client.CustomFetch = async (url, options) =>
    readMetadata(config, url, await connections.fetch(url, options, timeoutMs))
  try {
    const missing: string[] = []
    for (const algorithm of ALGORITHMS) {
      const outcome = await attempt(config, { algorithm, [client.customFetch]: fetch })
      if (outcome.is !== 'missing') return outcome
      missing.push(outcome.message)
    }
    return { is: 'refused', message: `must be an issuer with metadata: ${missing.join('; ')}` }
  } finally {
    await connections.close()
  }
}

/** `missing`: there is no metadata at this place, but there may be at the other one. `message` is a sentence. */
async function attempt(
  config: ProviderConfig,
  options: client.DiscoveryRequestOptions,
): Promise<Discovery | { readonly is: 'missing'; readonly message: string }> {
  try {
    const found = await client.discovery(new URL(config.issuer), config.clientId, undefined, client.None(), {
      ...options,
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

/**
 * Reads metadata for openid-client, bounded in size.
 * @throws DocumentFault; UnusableResponse if another attempt may succeed; what undici throws if the response breaks off
 */
async function readMetadata(config: ProviderConfig, url: string, response: RawResponse): Promise<Response> {
  const { status } = response
  if (status !== 200) {
    await response.body?.cancel()
    // A timeout, too many requests, and all of 5xx will pass.
    if (status === 408 || status === 429 || status >= 500) throw new UnusableResponse(`status ${status}`, status)
    const isRedirect = status >= 300 && status < 400
    throw new DocumentFault(`${url} ${isRedirect ? 'is redirected, with' : 'has'} status ${status}`, true)
  }
  const text = await boundedText(response).catch((error: unknown) => {
    if (error instanceof UnusableResponse) throw new DocumentFault(`has metadata that is too large at ${url}`)
    throw error
  })
  const document = parsedObject(text)
  if (document === undefined) throw new DocumentFault(`${url} is not a JSON object`, true)
  checkIssuer(config, document['issuer'])
  return Response.json(document)
}

/** To the letter (RFC 8414 §3.3), unlike openid-client. Only AUTH_URL, which has lost its final slash, may differ by that. */
function checkIssuer(config: ProviderConfig, found: unknown): void {
  if (isIssuer(config, found)) return
  const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, MAX_SHOWN)) : 'none'
  throw new DocumentFault(
    `must be the issuer that the metadata names, to the letter: it is ${config.issuer}, and the metadata names ${shown}`,
  )
}

/** openid-client wraps what its fetch() throws, unless that is a TypeError, and says nothing more about it. */
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
