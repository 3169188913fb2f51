import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'
import { translate, type FailedOutcome } from './grant-outcome.ts'
import { readProviderResponse, UnusableResponse, type RawResponse } from './provider-response.ts'
import type { ProviderTraffic } from './provider-traffic.ts'

/** A user waits for the push before the login page appears. */
const PUSH_TIMEOUT_MS = 5000
/** Concurrent pushes. If the provider does not respond, each uses up a file descriptor. */
const MAX_PUSHES = 64

/** The `request_uri` becomes part of an address that the browser must be able to load. */
const REQUEST_URI = /^[\x21-\x7e]{1,1024}$/
/** The response names its lifetime, but nothing here depends on it: the browser is redirected at once. */
const ANY_LIFETIME_SECONDS = 60

/** The parameters of an authorization request that do not come from the settings. */
export interface AuthorizationRequest {
  readonly state: string
  readonly verifier: string
  /** Binds the ID token to this login, with OpenID Connect. */
  readonly nonce?: string | undefined
  /** The partner's parameters; undefined unless this is a sign-up, empty if it has no partner. */
  readonly signup: Readonly<Record<string, string>> | undefined
}

/** Where to send the browser, or why the provider did not accept the pushed request. */
export type AuthorizationOutcome = { readonly is: 'ready'; readonly url: URL } | FailedOutcome

/** Makes authorization requests (RFC 6749 §4.1.1), and pushes them first if PAR_URL is set (RFC 9126). */
export class AuthorizationRequests {
  readonly #config: ProviderConfig
  readonly #pusher: client.Configuration
  #pushing = 0

  constructor(config: ProviderConfig, traffic: ProviderTraffic) {
    this.#config = config
    this.#pusher = traffic.clientFor('push', readPushResponse, PUSH_TIMEOUT_MS)
  }

  /** The address to send the browser to. */
  async url(request: AuthorizationRequest): Promise<AuthorizationOutcome> {
    const parameters = await this.#parameters(request)
    if (this.#config.parUrl === undefined) {
      return { is: 'ready', url: client.buildAuthorizationUrl(this.#pusher, parameters) }
    }
    if (this.#pushing >= MAX_PUSHES) {
      const cause = new Error('too many authorization requests are being pushed')
      return { is: 'unavailable', code: 'try_later', cause }
    }
    this.#pushing++
    try {
      return { is: 'ready', url: await client.buildAuthorizationUrlWithPAR(this.#pusher, parameters) }
    } catch (error) {
      return translate(error)
    } finally {
      this.#pushing--
    }
  }

  async #parameters({ state, verifier, nonce, signup }: AuthorizationRequest): Promise<URLSearchParams> {
    const { clientId, redirectUri, scope, legacyAppId, authorizationParams } = this.#config
    const parameters = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(nonce === undefined ? {} : { nonce }),
      ...(legacyAppId === undefined ? {} : { app_id: legacyAppId }),
      ...(signup === undefined ? {} : { prompt: 'registration', ...signup }),
    })
    for (const [name, value] of authorizationParams) {
      // A sign-up has its own prompt.
      if (signup === undefined || name !== 'prompt') parameters.append(name, value)
    }
    return parameters
  }
}

/**
 * Reads the response to a pushed authorization request (RFC 9126 §2.2) and normalizes it for openid-client.
 * @throws UnusableResponse as {@link readProviderResponse}, and if there is no usable `request_uri`
 */
async function readPushResponse(response: RawResponse): Promise<Response> {
  const read = await readProviderResponse(response)
  if (read.is === 'refusal') return read.refusal
  const requestUri = read.body?.['request_uri']
  if (typeof requestUri !== 'string' || !REQUEST_URI.test(requestUri)) {
    throw new UnusableResponse(`status ${read.status}, no usable request_uri`, read.status)
  }
  return Response.json({ request_uri: requestUri, expires_in: ANY_LIFETIME_SECONDS }, { status: 201 })
}
