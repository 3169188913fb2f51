import * as client from 'openid-client'
import { Headers, type RequestInit } from 'undici'
import type { ProviderConfig } from '../config/provider.ts'
import { parsedObject } from '../http/parsed-object.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { activeSpan, destinationOf } from '../telemetry/traces/span.ts'
import { clientAuthentication } from './client-authentication.ts'
import { ProviderConnections } from './provider-connections.ts'
import { SIGNATURE_ALGORITHMS } from './provider-keys.ts'
import { boundedText, UnusableResponse, type RawResponse } from './provider-response.ts'

/** Timeout of a request to the provider, including the response body. */
export const PROVIDER_TIMEOUT_MS = 9_000

/** The media type of a form, to the letter: it has no parameter, although clients like to add `charset` (RFC 6749 §4.1.3). */
const FORM = 'application/x-www-form-urlencoded'
/** The parameters of a request that are secret, or become so. */
const SECRET_PARAMETERS = ['code', 'code_verifier', 'state', 'refresh_token', 'token', 'client_assertion'] as const
const MIN_SECRET = 8
/** The attribute of spans that says what was asked of the provider. */
const KIND = 'oauth.request'

/** The kind of a request to the provider; a metrics label. */
type ProviderRequest = 'push' | 'exchange' | 'refresh' | 'revoke' | 'keys'

/** A metrics label. `busy`: a 429; `refused`: any other 4xx; `failed`: a 5xx, a redirect or an unusable body. */
type ProviderOutcome = 'ok' | 'refused' | 'busy' | 'failed' | 'timeout' | 'unreachable' | 'no_descriptor'

/** Notified of every request to the provider, once it is over. */
export interface ProviderObserver {
  asked(request: ProviderRequest, outcome: ProviderOutcome, seconds: number): void
  /** There is nothing at an address of the provider any more: it responds 404. */
  missing?(url: string): void
}

/** Reads a response and normalizes it for openid-client. @throws UnusableResponse */
type ResponseReader = (response: RawResponse) => Promise<Response>

/** The connections to the provider, and the clients of openid-client that use them. */
export class ProviderTraffic {
  readonly #config: ProviderConfig
  readonly #authentication: client.ClientAuth
  readonly #observer: ProviderObserver | undefined
  readonly #connections: ProviderConnections

  constructor(config: ProviderConfig, observer?: ProviderObserver) {
    this.#config = config
    this.#connections = new ProviderConnections(config.tokenUrl)
    this.#authentication = clientAuthentication(config)
    this.#observer = observer
  }

  /**
   * The client for one kind of request, which is counted under this name. It follows no redirect.
   * @param skewSeconds how much later than the clock of this machine it is, for what is judged by the time
   */
  clientFor(
    request: ProviderRequest,
    read: ResponseReader,
    timeoutMs = PROVIDER_TIMEOUT_MS,
    skewSeconds = 0,
  ): client.Configuration {
    const { clientId, authorizationUrl, tokenUrl, parUrl, revocationUrl, oidc } = this.#config
    const metadata = { [client.clockSkew]: skewSeconds }
    const configuration = new client.Configuration(metadataOf(this.#config), clientId, metadata, this.#authentication)
    // This client sets its own time limit.
    configuration.timeout = 0
    if (
      [authorizationUrl, tokenUrl, parUrl, revocationUrl, oidc?.endSessionUrl].some(
        (url) => url !== undefined && isInsecure(url),
      )
    ) {
      // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
      client.allowInsecureRequests(configuration)
    }
    configuration[client.customFetch] = this.#fetchFor(request, read, timeoutMs)
    return configuration
  }

  /** Fetches a public JSON object of the provider. It follows no redirect. @throws UnusableResponse; what undici throws */
  document(request: ProviderRequest, url: string, timeoutMs: number): Promise<Record<string, unknown>> {
    const options = { headers: { accept: 'application/json' }, redirect: 'manual' } as const
    return this.#ask(request, url, options, timeoutMs, async (response) => {
      const { status } = response
      const document = parsedObject(await boundedText(response))
      if (status === 200 && document !== undefined) return document
      throw new UnusableResponse(`status ${status}, ${document === undefined ? 'not ' : ''}a JSON object`, status)
    })
  }

  /** Closes all connections, including those in use. */
  close(): Promise<void> {
    return this.#connections.close()
  }

  /** The secrets that the response to a form must not bring into the log. A short value would black out common words. */
  #secretsOf({ body, headers }: RequestInit): string[] {
    const form = body instanceof URLSearchParams ? body : new URLSearchParams()
    // CLIENT_AUTH=client_secret_basic
    const basic = new Headers(headers).get('authorization')?.replace(/^Basic /, '')
    const secrets = [this.#config.clientSecret?.current, basic, ...SECRET_PARAMETERS.map((name) => form.get(name))]
    const long = secrets.filter((secret): secret is string => (secret?.length ?? 0) >= MIN_SECRET)
    // Each also as it is in the form.
    return long.flatMap((secret) => [secret, String(new URLSearchParams([['', secret]])).slice('='.length)])
  }

  #fetchFor(request: ProviderRequest, read: ResponseReader, timeoutMs: number): client.CustomFetch {
    return (url, options: { readonly headers: Readonly<Record<string, string>> }) => {
      const { 'content-type': type } = options.headers
      const headers = type === undefined ? options.headers : { ...options.headers, 'content-type': FORM }
      return this.#ask(request, url, { ...options, headers }, timeoutMs, read)
    }
  }

  async #ask<Result>(
    request: ProviderRequest,
    url: string,
    options: RequestInit,
    timeoutMs: number,
    read: (response: RawResponse) => Promise<Result>,
  ): Promise<Result> {
    const sentAt = performance.now()
    // Without its query, which an endpoint may have.
    const { pathname, origin, href } = new URL(url)
    const { method = 'GET' } = options
    const span = activeSpan().call({
      method,
      template: pathname,
      to: destinationOf(origin),
      attributes: { [KIND]: request },
    })
    let outcome: ProviderOutcome = 'failed'
    let status: number | undefined
    try {
      const response = await this.#connections.fetch(url, options, timeoutMs)
      outcome = outcomeOf(response)
      const { headers, body } = response
      status = response.status
      if (status === 404) this.#observer?.missing?.(href)
      return await read({ status, headers, body, secrets: this.#secretsOf(options) })
    } catch (error) {
      outcome = failureOf(error)
      throw error
    } finally {
      span.end({ status, error: outcome === 'ok' || outcome === 'refused' ? undefined : outcome })
      this.#observer?.asked(request, outcome, (performance.now() - sentAt) / 1000)
    }
  }
}

/** Whether requests to an address are not encrypted. The settings allow such addresses only outside production. */
export function isInsecure(url: string): boolean {
  return url.toLowerCase().startsWith('http:')
}

function metadataOf(config: ProviderConfig): client.ServerMetadata {
  const { issuer, issuerRequired, authorizationUrl, tokenUrl, parUrl, revocationUrl, oidc } = config
  return {
    issuer,
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    authorization_response_iss_parameter_supported: issuerRequired,
    ...(parUrl === undefined ? {} : { pushed_authorization_request_endpoint: parUrl }),
    ...(revocationUrl === undefined ? {} : { revocation_endpoint: revocationUrl }),
    ...(oidc?.endSessionUrl === undefined ? {} : { end_session_endpoint: oidc.endSessionUrl }),
    // The provider may use any of them, whatever its metadata say: openid-client would expect RS256 alone.
    ...(oidc === undefined ? {} : { id_token_signing_alg_values_supported: SIGNATURE_ALGORITHMS }),
  }
}

function outcomeOf({ status }: { readonly status: number }): ProviderOutcome {
  if (status === 429) return 'busy'
  if (status >= 400 && status < 500) return 'refused'
  return status >= 200 && status < 300 ? 'ok' : 'failed'
}

function failureOf(error: unknown): ProviderOutcome {
  if (isOutOfDescriptors(error)) return 'no_descriptor'
  if (error instanceof UnusableResponse) return error.busyForMs !== undefined ? 'busy' : 'failed'
  // The time limit of the request, or of the connection.
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  return name === 'TimeoutError' || cause?.code === 'UND_ERR_CONNECT_TIMEOUT' ? 'timeout' : 'unreachable'
}
