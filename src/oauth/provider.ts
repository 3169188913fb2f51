import * as client from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Config } from '../config/config.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { translate, type GrantOutcome, type TokenGrant } from './grant-outcome.ts'
import { readTokenResponse, UnusableResponse } from './token-response.ts'

/** Timeout of a request to the provider, including the response body. */
export const PROVIDER_TIMEOUT_MS = 9_000
const REVOCATION_TIMEOUT_MS = 2_000
/** Concurrent refreshes. If the provider does not respond, each uses up a file descriptor; logins need some too. */
const MAX_REFRESHES = 64
/** Characters that fit into a header. A token with any other could never be used. */
const TOKEN = /^[\x21-\x7e]+$/

/** The outcome of a refresh. `skipped`: nothing was sent, because the provider has failed recently or is busy. */
export type RefreshOutcome = GrantOutcome | { readonly is: 'skipped'; readonly retryAfterMs: number }

/** The parameters of an authorization request that do not come from the settings. */
export interface AuthorizationRequest {
  readonly state: string
  readonly verifier: string
  /** The partner's parameters; undefined unless this is a sign-up, empty if it has no partner. */
  readonly signup: Readonly<Record<string, string>> | undefined
}

type ProviderRequest = 'exchange' | 'refresh' | 'revoke'

/** A metrics label. `busy`: a 429; `refused`: any other 4xx; `failed`: a 5xx, a redirect or an unusable body. */
type ProviderOutcome = 'ok' | 'refused' | 'busy' | 'failed' | 'timeout' | 'unreachable' | 'no_descriptor'

/** Notified of every request to the provider, once it is over. */
export interface ProviderObserver {
  asked(request: ProviderRequest, outcome: ProviderOutcome, seconds: number): void
}

/** Client of the OAuth 2.0 provider (docs/upstream.md, The provider), built on openid-client. */
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
    // One connection per request: a login would be lost on a reused connection that the provider is just closing.
    pipelining: 0,
  })

  constructor(config: Config['oauth'], observer?: ProviderObserver) {
    this.#config = config
    this.#observer = observer
    this.#exchanger = this.#configuration('exchange', PROVIDER_TIMEOUT_MS)
    this.#refresher = this.#configuration('refresh', PROVIDER_TIMEOUT_MS)
    this.#revoker = this.#configuration('revoke', REVOCATION_TIMEOUT_MS)
  }

  /** Where to send the browser to log in (docs/upstream.md, Authorization request). No request is made for it. */
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

  /** Exchanges the code of a callback for tokens (RFC 6749 §4.1.3). Never retried: a code can be used only once. */
  async exchange(callbackQuery: string, state: string, verifier: string): Promise<GrantOutcome> {
    const callback = new URL(`${this.#config.redirectUri}?${callbackQuery}`)
    this.#normalizeIssuer(callback.searchParams)
    const outcome = await this.#grant(() =>
      client.authorizationCodeGrant(this.#exchanger, callback, {
        pkceCodeVerifier: verifier,
        expectedState: state,
      }),
    )
    if (outcome.is === 'granted') this.#circuit.succeed()
    return outcome
  }

  /** Whether refreshes are blocked until a single one has shown that the provider works again. */
  get isCircuitOpen(): boolean {
    return this.#circuit.isOpen
  }

  /** When the provider last issued tokens, or refused a single token as invalid (epoch ms). */
  get workedAt(): number {
    return this.#circuit.workedAt
  }

  /** Milliseconds until a refresh would be sent; 0 if it would be sent now. */
  get refreshAfterMs(): number {
    return this.#circuit.retryAfterMs
  }

  /**
   * Exchanges a refresh token for new tokens (RFC 6749 §6). While the provider is failing, refreshes are blocked; code
   * exchanges are not, because a code that is not exchanged now is lost.
   */
  async refresh(refreshToken: string): Promise<RefreshOutcome> {
    const outcome = await this.#circuit.run(
      () => this.#grant(() => client.refreshTokenGrant(this.#refresher, refreshToken)),
      // `invalid_grant` concerns only this token and shows that the provider works. Other failures would hit any token.
      (outcome) => outcome.is !== 'granted' && outcome.code !== 'invalid_grant',
    )
    if (outcome?.is === 'unavailable' && outcome.busyForMs !== undefined) {
      this.#circuit.open(outcome.busyForMs)
    }
    return outcome ?? { is: 'skipped', retryAfterMs: this.#circuit.retryAfterMs }
  }

  /** Revokes a token (RFC 7009) if REVOCATION_URL is set. Resolves to false if that failed; never rejects. */
  async revoke(token: string): Promise<boolean> {
    if (this.#config.revocationUrl === undefined) return true
    const revocation = client.tokenRevocation(this.#revoker, token).then(
      () => true,
      () => false,
    )
    this.#revocations.add(revocation)
    return revocation.finally(() => this.#revocations.delete(revocation))
  }

  /** Waits for running revocations, then closes all connections to the provider. */
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
    const configuration = new client.Configuration(metadata, clientId, undefined, authentication)
    configuration.timeout = timeoutMs / 1000
    if ([authUrl, revocationUrl].some((url) => url?.toLowerCase().startsWith('http:'))) {
      // oxlint-disable-next-line typescript/no-deprecated -- deprecated only to stand out; settings allow http outside production
      client.allowInsecureRequests(configuration)
    }
    configuration[client.customFetch] = (url, options) => this.#fetch(request, url, options)
    return configuration
  }

  async #fetch(request: ProviderRequest, url: string, options: object): Promise<Response> {
    const sentAt = performance.now()
    let outcome: ProviderOutcome = 'failed'
    try {
      // Node's own fetch does not accept a dispatcher of another undici version.
      const response = await undiciFetch(url, { ...options, dispatcher: this.#agent })
      outcome = outcomeOf(response)
      return request === 'revoke' ? response : await readTokenResponse(response)
    } catch (error) {
      outcome = failureOf(error)
      throw error
    } finally {
      this.#observer?.asked(request, outcome, (performance.now() - sentAt) / 1000)
    }
  }

  /** RFC 9207 §2.4 compares `iss` exactly, but AUTH_URL is stored without the trailing slash that some issuers have. */
  #normalizeIssuer(callback: URLSearchParams): void {
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

  #read(response: client.TokenEndpointResponse): GrantOutcome {
    const { access_token: accessToken, token_type: type, expires_in: lifetime } = response
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
      ...(response.refresh_token === undefined ? {} : { refreshToken: response.refresh_token }),
      ...(response.scope === undefined ? {} : { scope: response.scope }),
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

function failureOf(error: unknown): ProviderOutcome {
  if (isOutOfDescriptors(error)) return 'no_descriptor'
  if (error instanceof UnusableResponse) return error.busyForMs !== undefined ? 'busy' : 'failed'
  // A timeout of openid-client (AbortSignal.timeout) or of undici.
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  const isTimeout = name === 'TimeoutError' || /^UND_ERR_\w+_TIMEOUT$/.test(cause?.code ?? '')
  return isTimeout ? 'timeout' : 'unreachable'
}
