import * as client from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Config } from '../config.ts'
import type { Attribution } from './attribution.ts'

/** Longest wait for an answer of the provider, body included. */
export const PROVIDER_TIMEOUT_MS = 10_000
const REVOCATION_TIMEOUT_MS = 2_000
const MAX_ANSWER_BYTES = 256 * 1024
const ABSURD_LIFETIME_SECONDS = 30 * 86_400

/** Tokens as the provider gave them. Times are epoch ms. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string
  readonly scope: string
  /** The provider named no usable lifetime, so the configured one stands in. */
  readonly lifetimeGuessed: boolean
}

/** How a request to the token endpoint ended. `cause` is for the log. */
export type GrantOutcome =
  | { readonly is: 'granted'; readonly grant: TokenGrant }
  | { readonly is: 'refused'; readonly code: RefusalCode; readonly cause: unknown }
  | { readonly is: 'unavailable'; readonly cause: unknown }

/** Why the provider said no. */
export type RefusalCode = 'access_denied' | 'invalid_grant' | 'invalid_client' | 'login_failed'

/** What an authorization request adds to the settings. */
export interface AuthorizationRequest {
  readonly state: string
  readonly verifier: string
  /** Present for a sign-up, empty when it has no partner. */
  readonly signup?: Attribution
}

/** The OAuth 2.0 provider (interface 4.3, 5.5). All of openid-client is in here. */
export class Provider {
  readonly #config: Config['oauth']
  readonly #client: client.Configuration
  readonly #agent = new Agent({
    maxResponseSize: MAX_ANSWER_BYTES,
    headersTimeout: PROVIDER_TIMEOUT_MS,
    bodyTimeout: PROVIDER_TIMEOUT_MS,
    connect: { timeout: 3000 },
  })

  constructor(config: Config['oauth']) {
    this.#config = config
    const metadata: client.ServerMetadata = {
      issuer: config.authUrl,
      authorization_endpoint: `${config.authUrl}/oauth2/auth`,
      token_endpoint: `${config.authUrl}/oauth2/token`,
      ...(config.revocationUrl === undefined ? {} : { revocation_endpoint: config.revocationUrl }),
    }
    const authentication =
      config.clientSecret === undefined ? client.None() : client.ClientSecretPost(config.clientSecret)
    this.#client = new client.Configuration(metadata, config.clientId, undefined, authentication)
    this.#client.timeout = PROVIDER_TIMEOUT_MS / 1000
    // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
    if (config.authUrl.startsWith('http:')) client.allowInsecureRequests(this.#client)
    const dispatcher = this.#agent
    // Not Node's own fetch: it refuses a dispatcher of another undici.
    this.#client[client.customFetch] = (url, options) =>
      undiciFetch(url, { ...(options as object), dispatcher })
  }

  /** The address the browser is sent to: exactly the parameters of interface 2.1, from settings alone. */
  async authorizationUrl(request: AuthorizationRequest): Promise<URL> {
    const { clientId, redirectUri, scope, legacyAppId } = this.#config
    return client.buildAuthorizationUrl(this.#client, {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state: request.state,
      code_challenge: await client.calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: 'S256',
      ...(legacyAppId === undefined ? {} : { app_id: legacyAppId }),
      ...(request.signup === undefined ? {} : { prompt: 'registration', ...request.signup }),
    })
  }

  /** Exchanges the code of a callback for tokens (interface 2.4). Made once, never repeated: a code is single use. */
  async exchange(callbackQuery: string, state: string, verifier: string): Promise<GrantOutcome> {
    const callback = new URL(`${this.#config.redirectUri}?${callbackQuery}`)
    return this.#grant(() =>
      client.authorizationCodeGrant(this.#client, callback, {
        pkceCodeVerifier: verifier,
        expectedState: state,
      }),
    )
  }

  /** Trades a refresh token for new tokens (RFC 6749 §6). */
  async refresh(refreshToken: string): Promise<GrantOutcome> {
    return this.#grant(() => client.refreshTokenGrant(this.#client, refreshToken))
  }

  /** Revokes a token (RFC 7009), if the provider can. Resolves false when it could not be done in time. */
  async revoke(token: string): Promise<boolean> {
    if (this.#config.revocationUrl === undefined) return true
    const late = new Promise<false>((resolve) => {
      setTimeout(() => resolve(false), REVOCATION_TIMEOUT_MS).unref()
    })
    const done = client.tokenRevocation(this.#client, token).then(
      () => true,
      () => false,
    )
    return Promise.race([done, late])
  }

  /** Ends the connections to the provider. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #grant(request: () => Promise<client.TokenEndpointResponse>): Promise<GrantOutcome> {
    try {
      return { is: 'granted', grant: this.#read(await request()) }
    } catch (error) {
      return translate(error)
    }
  }

  #read(answer: client.TokenEndpointResponse): TokenGrant {
    const lifetime = Number(answer.expires_in)
    const lifetimeGuessed = !(lifetime > 0 && lifetime <= ABSURD_LIFETIME_SECONDS)
    return {
      accessToken: answer.access_token,
      expiresAt: Date.now() + (lifetimeGuessed ? this.#config.tokenFallbackMs : lifetime * 1000),
      ...(answer.refresh_token === undefined ? {} : { refreshToken: answer.refresh_token }),
      scope: answer.scope ?? this.#config.scope,
      lifetimeGuessed,
    }
  }
}

/** The `error` of a callback or token answer (RFC 6749 §4.1.2.1, §5.2) in our own words. */
export function refusalCode(error: string | undefined): RefusalCode {
  switch (error) {
    case 'access_denied':
    case 'request_denied':
      return 'access_denied'
    case 'invalid_grant':
    case 'invalid_client':
      return error
    default:
      return 'login_failed'
  }
}

/** Foreign errors end here, told apart by class and code. */
async function translate(error: unknown): Promise<GrantOutcome> {
  if (error instanceof client.AuthorizationResponseError) {
    return { is: 'refused', code: refusalCode(error.error), cause: error }
  }
  if (error instanceof client.ResponseBodyError) {
    if (error.status >= 500) return { is: 'unavailable', cause: error }
    return { is: 'refused', code: refusalCode(error.error), cause: error }
  }
  if (error instanceof client.WWWAuthenticateChallengeError) {
    // The challenge hides the body; at a token endpoint a 401 is about the client (RFC 6749 §5.2).
    const body: unknown = await error.response.json().catch(() => undefined)
    const named = isErrorBody(body) ? body.error : 'invalid_client'
    return { is: 'refused', code: refusalCode(named), cause: error }
  }
  if (error instanceof client.ClientError) return translateByCode(error)
  // fetch() says "the network failed" with a TypeError that has no code of its own.
  if (error instanceof TypeError && !('code' in error)) return { is: 'unavailable', cause: error }
  throw error
}

function translateByCode(error: client.ClientError): GrantOutcome {
  switch (error.code) {
    case 'OAUTH_TIMEOUT':
    case 'OAUTH_ABORT':
    case 'OAUTH_PARSE_ERROR':
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
      return { is: 'unavailable', cause: error }
    case 'OAUTH_RESPONSE_IS_NOT_CONFORM': {
      const status = error.cause instanceof Object && 'status' in error.cause ? Number(error.cause.status) : 0
      if (status >= 500) return { is: 'unavailable', cause: error }
      if (status === 401) return { is: 'refused', code: 'invalid_client', cause: error }
      return { is: 'refused', code: 'login_failed', cause: error }
    }
    default:
      return { is: 'refused', code: 'login_failed', cause: error }
  }
}

function isErrorBody(body: unknown): body is { error: string } {
  return body instanceof Object && 'error' in body && typeof body.error === 'string'
}
