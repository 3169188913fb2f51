import * as client from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Config } from '../config.ts'
import type { Attribution } from './attribution.ts'
import { readTokenAnswer, UnusableAnswer } from './token-answer.ts'

/** Longest wait for an answer of the provider, body included. */
export const PROVIDER_TIMEOUT_MS = 9_000
const REVOCATION_TIMEOUT_MS = 2_000
/** What fits into a header: a token that does not could never be used. */
const TOKEN = /^[\x21-\x7e]+$/

/** Tokens as the provider gave them. Times are epoch ms. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string
  /** Absent: what was asked for, or what was granted before (RFC 6749 §5.1, §6). */
  readonly scope?: string
  /** The provider named no usable lifetime, so the configured one stands in. */
  readonly lifetimeGuessed: boolean
}

/** How a request to the token endpoint ended. `cause` is for the log. */
export type GrantOutcome =
  | { readonly is: 'granted'; readonly grant: TokenGrant }
  | { readonly is: 'refused'; readonly code: RefusalCode; readonly cause: unknown }
  /** `try_later`: it has too much to do, and has said so. */
  | {
      readonly is: 'unavailable'
      readonly code: 'provider_unavailable' | 'try_later'
      readonly cause: unknown
    }

/** Why the provider said no. */
export type RefusalCode = 'access_denied' | 'invalid_grant' | 'invalid_client' | 'login_failed'

/** The provider's own word for why it refused (RFC 6749 §5.2 says what it may be made of), and nothing else of its answer. */
export class ProviderRefusal extends Error {
  constructor(error: string) {
    super(`the provider said ${/^[\w.:-]{1,64}$/.test(error) ? error : 'something unreadable'}`)
    this.name = 'ProviderRefusal'
  }
}

/** What a callback may say of a login that failed. */
export type AuthErrorOfCallback = Exclude<RefusalCode, 'invalid_client'> | 'provider_unavailable'

/** What an authorization request adds to the settings. */
export interface AuthorizationRequest {
  readonly state: string
  readonly verifier: string
  /** Present for a sign-up, empty when it has no partner. */
  readonly signup?: Attribution
}

/** What is asked of the provider. */
type ProviderRequest = 'exchange' | 'refresh' | 'revoke'

/**
 * How the provider took a request: `busy` is a 429, `refused` any other 4xx, `failed` a 5xx, a redirect, or what is no
 * answer to such a request.
 */
type ProviderOutcome = 'ok' | 'refused' | 'busy' | 'failed' | 'timeout' | 'unreachable'

/** Told of every request that was sent to the provider, once it is over. */
export interface ProviderObserver {
  asked(request: ProviderRequest, outcome: ProviderOutcome, seconds: number): void
}

/** The OAuth 2.0 provider (interface 4.3, 5.5). All of openid-client is in here. */
export class Provider {
  readonly #config: Config['oauth']
  readonly #observer: ProviderObserver | undefined
  readonly #exchanger: client.Configuration
  readonly #refresher: client.Configuration
  readonly #revoker: client.Configuration
  readonly #revocations = new Set<Promise<boolean>>()
  readonly #agent = new Agent({
    headersTimeout: PROVIDER_TIMEOUT_MS,
    bodyTimeout: PROVIDER_TIMEOUT_MS,
    connect: { timeout: 3000 },
    // A connection for each request: on a kept one that the provider is just closing, a login would be lost.
    pipelining: 0,
  })

  constructor(config: Config['oauth'], observer?: ProviderObserver) {
    this.#config = config
    this.#observer = observer
    this.#exchanger = this.#configuration('exchange', PROVIDER_TIMEOUT_MS)
    this.#refresher = this.#configuration('refresh', PROVIDER_TIMEOUT_MS)
    this.#revoker = this.#configuration('revoke', REVOCATION_TIMEOUT_MS)
  }

  /** The address the browser is sent to: exactly the parameters of interface 2.1, from settings alone. */
  async authorizationUrl(request: AuthorizationRequest): Promise<URL> {
    const { clientId, redirectUri, scope, legacyAppId } = this.#config
    return client.buildAuthorizationUrl(this.#exchanger, {
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
    this.#fitIssuer(callback.searchParams)
    return this.#grant(() =>
      client.authorizationCodeGrant(this.#exchanger, callback, {
        pkceCodeVerifier: verifier,
        expectedState: state,
      }),
    )
  }

  /** Trades a refresh token for new tokens (RFC 6749 §6). */
  async refresh(refreshToken: string): Promise<GrantOutcome> {
    return this.#grant(() => client.refreshTokenGrant(this.#refresher, refreshToken))
  }

  /** Revokes a token (RFC 7009), if the provider can. Resolves false when it could not be done in time. */
  async revoke(token: string): Promise<boolean> {
    if (this.#config.revocationUrl === undefined) return true
    const revocation = client.tokenRevocation(this.#revoker, token).then(
      () => true,
      () => false,
    )
    this.#revocations.add(revocation)
    return revocation.finally(() => this.#revocations.delete(revocation))
  }

  /** Ends the connections to the provider, once the revocations under way are through. */
  async close(): Promise<void> {
    await Promise.all(this.#revocations)
    await this.#agent.destroy()
  }

  #configuration(request: ProviderRequest, timeoutMs: number): client.Configuration {
    const { authUrl, revocationUrl, clientId, clientSecret } = this.#config
    const metadata: client.ServerMetadata = {
      issuer: authUrl,
      authorization_endpoint: `${authUrl}/oauth2/auth`,
      token_endpoint: `${authUrl}/oauth2/token`,
      ...(revocationUrl === undefined ? {} : { revocation_endpoint: revocationUrl }),
    }
    const authentication = clientSecret === undefined ? client.None() : client.ClientSecretPost(clientSecret)
    const made = new client.Configuration(metadata, clientId, undefined, authentication)
    made.timeout = timeoutMs / 1000
    // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
    if ([authUrl, revocationUrl].some((url) => url?.toLowerCase().startsWith('http:')))
      client.allowInsecureRequests(made)
    made[client.customFetch] = (url, options) => this.#ask(request, url, options)
    return made
  }

  async #ask(request: ProviderRequest, url: string, options: object): Promise<Response> {
    const sentAt = performance.now()
    let outcome: ProviderOutcome = 'failed'
    try {
      // Not Node's own fetch: it refuses a dispatcher of another undici.
      const answer = await undiciFetch(url, { ...options, dispatcher: this.#agent })
      outcome = outcomeOf(answer)
      return request === 'revoke' ? answer : await readTokenAnswer(answer)
    } catch (error) {
      outcome = faultOf(error)
      throw error
    } finally {
      this.#observer?.asked(request, outcome, (performance.now() - sentAt) / 1000)
    }
  }

  /** Some issuers are written with a slash at the end, and AUTH_URL is kept without (RFC 9207 §2.4 compares them). */
  #fitIssuer(callback: URLSearchParams): void {
    const { authUrl } = this.#config
    const [issuer, ...more] = callback.getAll('iss')
    if (more.length === 0 && issuer === `${authUrl}/`) callback.set('iss', authUrl)
  }

  async #grant(request: () => Promise<client.TokenEndpointResponse>): Promise<GrantOutcome> {
    try {
      return this.#read(await request())
    } catch (error) {
      return translate(error)
    }
  }

  #read(answer: client.TokenEndpointResponse): GrantOutcome {
    const { access_token: accessToken, token_type: type, expires_in: lifetime } = answer
    if (type !== 'bearer' || !TOKEN.test(accessToken)) {
      return {
        is: 'refused',
        code: 'login_failed',
        cause: new Error('the access token is not a usable bearer token'),
      }
    }
    const grant: TokenGrant = {
      accessToken,
      expiresAt: Date.now() + (lifetime === undefined ? this.#config.tokenFallbackMs : lifetime * 1000),
      ...(answer.refresh_token === undefined ? {} : { refreshToken: answer.refresh_token }),
      ...(answer.scope === undefined ? {} : { scope: answer.scope }),
      lifetimeGuessed: lifetime === undefined,
    }
    return { is: 'granted', grant }
  }
}

/**
 * The `error` of a callback (RFC 6749 §4.1.2.1) in our own words. Anybody can write such a link, so what would wake the
 * operator up is not believed.
 */
export function callbackError(error: string | undefined): AuthErrorOfCallback {
  switch (error) {
    case 'access_denied':
    case 'request_denied':
      return 'access_denied'
    case 'invalid_grant':
      return 'invalid_grant'
    case 'server_error':
    case 'temporarily_unavailable':
      return 'provider_unavailable'
    default:
      return 'login_failed'
  }
}

/** How a request ended whose answer carries an `error` (RFC 6749 §5.2). */
function tokenError(error: string): GrantOutcome {
  const cause = new ProviderRefusal(error)
  switch (error) {
    case 'invalid_grant':
      return { is: 'refused', code: 'invalid_grant', cause }
    case 'invalid_client':
    case 'unauthorized_client':
      return { is: 'refused', code: 'invalid_client', cause }
    case 'server_error':
    case 'temporarily_unavailable':
      return { is: 'unavailable', code: 'provider_unavailable', cause }
    default:
      return { is: 'refused', code: 'login_failed', cause }
  }
}

function outcomeOf({ status }: { readonly status: number }): ProviderOutcome {
  if (status === 429) return 'busy'
  if (status >= 400 && status < 500) return 'refused'
  return status >= 200 && status < 300 ? 'ok' : 'failed'
}

function faultOf(error: unknown): ProviderOutcome {
  if (error instanceof UnusableAnswer) return error.isBusy ? 'busy' : 'failed'
  // openid-client's own deadline (AbortSignal.timeout), and undici's.
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  const isTimeout = name === 'TimeoutError' || /^UND_ERR_\w+_TIMEOUT$/.test(cause?.code ?? '')
  return isTimeout ? 'timeout' : 'unreachable'
}

/** Foreign errors end here, told apart by class and code. */
function translate(error: unknown): GrantOutcome {
  if (error instanceof client.AuthorizationResponseError) {
    const code = callbackError(error.error)
    const cause = new ProviderRefusal(error.error)
    return code === 'provider_unavailable'
      ? { is: 'unavailable', code, cause }
      : { is: 'refused', code, cause }
  }
  if (error instanceof client.ResponseBodyError) return tokenError(error.error)
  if (error instanceof client.ClientError) {
    const { cause } = error
    if (cause instanceof UnusableAnswer) {
      return { is: 'unavailable', code: cause.isBusy ? 'try_later' : 'provider_unavailable', cause: error }
    }
    const isAway = error.code === 'OAUTH_TIMEOUT' || error.code === 'OAUTH_ABORT'
    return isAway ? away(error) : { is: 'refused', code: 'login_failed', cause: error }
  }
  // fetch() says "the network failed" with a TypeError that has no code of its own.
  if (error instanceof TypeError && !('code' in error)) return away(error)
  throw error
}

function away(cause: unknown): GrantOutcome {
  return { is: 'unavailable', code: 'provider_unavailable', cause }
}
