import * as client from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Config } from '../config/config.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { translate, type GrantOutcome, type TokenGrant } from './grant-outcome.ts'
import { readTokenResponse, UnusableResponse } from './token-response.ts'

/** Longest wait for an answer of the provider, body included. */
export const PROVIDER_TIMEOUT_MS = 9_000
const REVOCATION_TIMEOUT_MS = 2_000
/** Refreshes under way at once. A provider that says nothing holds a descriptor for each, and they leave room for logins. */
const MAX_REFRESHES = 64
/** What fits into a header: a token that does not could never be used. */
const TOKEN = /^[\x21-\x7e]+$/

/** How a refresh ended. `skipped`: nothing was sent, because the provider has failed lately or has enough to do. */
export type RefreshOutcome = GrantOutcome | { readonly is: 'skipped'; readonly retryAfterMs: number }

/** What an authorization request adds to the settings. */
export interface AuthorizationRequest {
  readonly state: string
  readonly verifier: string
  /** Present for a sign-up, empty when it has no partner. */
  readonly signup?: Readonly<Record<string, string>>
}

/** What is asked of the provider. */
type ProviderRequest = 'exchange' | 'refresh' | 'revoke'

/**
 * How the provider took a request: `busy` is a 429, `refused` any other 4xx, `failed` a 5xx, a redirect, or what is no
 * answer to such a request.
 */
type ProviderOutcome = 'ok' | 'refused' | 'busy' | 'failed' | 'timeout' | 'unreachable' | 'no_descriptor'

/** Told of every request that was sent to the provider, once it is over. */
export interface ProviderObserver {
  asked(request: ProviderRequest, outcome: ProviderOutcome, seconds: number): void
}

/** The OAuth 2.0 provider (docs/upstream.md, The provider). All of openid-client is in here. */
export class Provider {
  readonly #config: Config['oauth']
  readonly #observer: ProviderObserver | undefined
  readonly #exchanger: client.Configuration
  readonly #refresher: client.Configuration
  readonly #revoker: client.Configuration
  readonly #revocations = new Set<Promise<boolean>>()
  readonly #circuit = new CircuitBreaker(MAX_REFRESHES)
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

  /** The address the browser is sent to, made from settings alone (docs/upstream.md, Authorization request). */
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

  /** Exchanges the code of a callback for tokens (RFC 6749 §4.1.3). Made once, never repeated: a code is single use. */
  async exchange(callbackQuery: string, state: string, verifier: string): Promise<GrantOutcome> {
    const callback = new URL(`${this.#config.redirectUri}?${callbackQuery}`)
    this.#fitIssuer(callback.searchParams)
    const outcome = await this.#grant(() =>
      client.authorizationCodeGrant(this.#exchanger, callback, {
        pkceCodeVerifier: verifier,
        expectedState: state,
      }),
    )
    if (outcome.is === 'granted') this.#circuit.succeed()
    return outcome
  }

  /** Whether refreshes are held back until a single one has shown that the provider works again. */
  get isCircuitOpen(): boolean {
    return this.#circuit.isOpen
  }

  /** When it last gave tokens, or refused one for good (epoch ms). */
  get workedAt(): number {
    return this.#circuit.workedAt
  }

  /** Milliseconds until a refresh would be sent; 0 for now. */
  get refreshAfterMs(): number {
    return this.#circuit.retryAfterMs
  }

  /**
   * Trades a refresh token for new tokens (RFC 6749 §6). Only refreshes are held back from a provider that fails: a code
   * that is not exchanged now is lost.
   */
  async refresh(refreshToken: string): Promise<RefreshOutcome> {
    const outcome = await this.#circuit.run(
      () => this.#grant(() => client.refreshTokenGrant(this.#refresher, refreshToken)),
      // A refusal of this one token shows that the provider works; any other would meet the next token as well.
      ({ is, ...more }) => is !== 'granted' && 'code' in more && more.code !== 'invalid_grant',
    )
    if (outcome?.is === 'unavailable' && outcome.busyForMs !== undefined) {
      this.#circuit.open(outcome.busyForMs)
    }
    return outcome ?? { is: 'skipped', retryAfterMs: this.#circuit.retryAfterMs }
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
      return request === 'revoke' ? answer : await readTokenResponse(answer)
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

function outcomeOf({ status }: { readonly status: number }): ProviderOutcome {
  if (status === 429) return 'busy'
  if (status >= 400 && status < 500) return 'refused'
  return status >= 200 && status < 300 ? 'ok' : 'failed'
}

function faultOf(error: unknown): ProviderOutcome {
  if (isOutOfDescriptors(error)) return 'no_descriptor'
  if (error instanceof UnusableResponse) return error.busyForMs !== undefined ? 'busy' : 'failed'
  // openid-client's own deadline (AbortSignal.timeout), and undici's.
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  const isTimeout = name === 'TimeoutError' || /^UND_ERR_\w+_TIMEOUT$/.test(cause?.code ?? '')
  return isTimeout ? 'timeout' : 'unreachable'
}
