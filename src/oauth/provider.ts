import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'
import { Permits } from '../limits/permits.ts'
import { descriptorLimit } from '../telemetry/descriptors.ts'
import {
  AuthorizationRequests,
  type AuthorizationOutcome,
  type AuthorizationRequest,
} from './authorization-requests.ts'
import { CircuitBreaker, type Verdict } from './circuit-breaker.ts'
import { granted, type FailedOutcome, type GrantOutcome, loginFailed, refusalOf, translate } from './grant-outcome.ts'
import type { AcceptedTokens } from './id-tokens.ts'
import type { OpenId } from './open-id.ts'
import { standstill } from '../time/standstill.ts'
import { readTokenResponse, type RawResponse } from './provider-response.ts'
import { PROVIDER_TIMEOUT_MS, ProviderTraffic, type ProviderObserver } from './provider-traffic.ts'
import { RefreshLimit } from './refresh-limit.ts'
import { Revocations, type RevocationFailure, type RevokedTokens } from './revocations.ts'
import { storeAheadSeconds, storeNow } from '../time/store-time.ts'

/**
 * The ID token of a refresh, under a name that openid-client does not know: it would refuse the new tokens, which replace
 * those of the session, because of an ID token that a provider issues once and repeats.
 */
const REFRESHED_ID_TOKEN = 'refreshed_id_token'

/** Concurrent refreshes. If the provider does not respond, each uses up a file descriptor; logins need some too. */
export const MAX_REFRESHES = 64

/** The requests of logins may use up one of so many file descriptors that this process may have. */
const DESCRIPTORS_PER_LOGIN = 4
const LOGINS = 'logins'

/** The outcome of a refresh. `skipped`: nothing was sent, because the provider has failed recently or is busy. */
type RefreshOutcome = GrantOutcome | { readonly is: 'skipped'; readonly retryAfterMs: number }

/** These prove, beside the callback, that a code is this server's. */
interface ExchangeProofs {
  readonly state: string
  readonly verifier: string
  /** The nonce of the authorization request, with OpenID Connect. */
  readonly nonce: string | undefined
  /** When the authorization request was made (epoch ms). */
  readonly startedAt: number
}

/** Makes the part of a provider that only OpenID Connect needs. */
export type OpenIdOf = (traffic: ProviderTraffic) => OpenId

/** Client of the OAuth 2.0 provider (docs/upstream.md, The provider), built on openid-client. */
export class Provider {
  /** Blocks refreshes while the provider is failing. It works when it issues tokens. */
  readonly circuit = new CircuitBreaker(MAX_REFRESHES)
  /** Blocks refreshes while the provider limits them. */
  readonly limit = new RefreshLimit()
  /** Called after a login for which the provider has issued tokens, with the time when they were asked for. */
  onLogin: (askedAt: number) => void = () => undefined
  readonly #config: ProviderConfig
  readonly #traffic: ProviderTraffic
  readonly #exchanger: () => client.Configuration
  readonly #refresher: client.Configuration
  readonly #authorizations: AuthorizationRequests
  readonly #revocations: Revocations
  readonly #permits = new Permits()
  readonly #maxLogins: number

  /** Undefined unless logins are OpenID Connect. */
  readonly openId: OpenId | undefined

  /** @param descriptors how many files this process may have open, of which logins take a quarter at most */
  constructor(
    config: ProviderConfig,
    observer?: ProviderObserver,
    openIdOf?: OpenIdOf,
    descriptors = descriptorLimit() ?? Infinity,
  ) {
    const traffic = new ProviderTraffic(config, observer)
    this.#config = config
    this.#maxLogins = Math.floor(descriptors / DESCRIPTORS_PER_LOGIN)
    this.#traffic = traffic
    this.openId = openIdOf?.(traffic)
    const read = (name: string) => (response: RawResponse) =>
      readTokenResponse(response, this.openId === undefined ? undefined : name)
    this.#exchanger = bySkew((seconds) => traffic.clientFor('exchange', read('id_token'), PROVIDER_TIMEOUT_MS, seconds))
    this.#refresher = traffic.clientFor('refresh', read(REFRESHED_ID_TOKEN))
    this.#authorizations = new AuthorizationRequests(config, traffic)
    this.#revocations = new Revocations(config, traffic)
  }

  /** Where to send the browser to log in (docs/upstream.md, Authorization request). Asks the provider only with PAR_URL. */
  authorizationUrl(request: AuthorizationRequest): Promise<AuthorizationOutcome> {
    const url = () => this.#authorizations.url(request)
    return this.#config.parUrl === undefined ? url() : this.#forLogin(url)
  }

  /** Exchanges the code of a callback for tokens (RFC 6749 §4.1.3). Never retried: a code can be used only once. */
  exchange(callbackQuery: string, proofs: ExchangeProofs): Promise<GrantOutcome> {
    return this.#forLogin(() => this.#exchange(callbackQuery, proofs))
  }

  async #exchange(callbackQuery: string, proofs: ExchangeProofs): Promise<GrantOutcome> {
    const { state, verifier, nonce, startedAt } = proofs
    if (this.openId !== undefined && nonce === undefined) {
      // The login was started before OIDC was switched on.
      return loginFailed('the login was started without a nonce')
    }
    const callback = new URL(`${this.#config.redirectUri}?${callbackQuery}`)
    // openid-client takes an empty iss for a missing one.
    if (callback.searchParams.get('iss') === '') {
      return loginFailed('the iss of the callback is empty')
    }
    this.#normalizeIssuer(callback.searchParams)
    const maxAge = this.#maxAge(startedAt)
    const askedAt = standstill.now()
    let tokens: AcceptedTokens | undefined
    const outcome = await this.#grant(async () => {
      return (tokens = await client.authorizationCodeGrant(this.#exchanger(), callback, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        ...(this.openId !== undefined && nonce !== undefined && { expectedNonce: nonce }),
        ...(maxAge !== undefined && { maxAge }),
      }))
    })
    if (outcome.is === 'granted') {
      this.circuit.succeed()
      this.limit.lift()
      this.onLogin(askedAt)
    }
    if (outcome.is !== 'granted' || this.openId === undefined || tokens === undefined) return outcome
    const identified = await this.openId.idTokens.identify(tokens)
    if (identified.is === 'known') return { ...outcome, grant: { ...outcome.grant, identity: identified.identity } }
    // Nobody will use them.
    void this.revoke(outcome.grant)
    return identified
  }

  /**
   * Exchanges a refresh token for new tokens (RFC 6749 §6). While the provider is failing, refreshes are blocked; code
   * exchanges are not, because a code that is not exchanged now is lost.
   * @param source the name by which the user counts among those whom the provider limits, or for whom it fails
   * @param sub the user of the session, with OpenID Connect: an ID token that comes with the new tokens must name the same
   */
  async refresh(refreshToken: string, source: string, sub?: string): Promise<RefreshOutcome> {
    const limitedMs = this.limit.take(source)
    if (limitedMs > 0) return { is: 'skipped', retryAfterMs: limitedMs }
    const outcome = await this.circuit.run(() => this.#refreshed(refreshToken, sub), verdictOf, source)
    if (outcome === undefined) return { is: 'skipped', retryAfterMs: this.circuit.retryAfterMs(source) }
    const busyForMs = busyTime(outcome)
    if (busyForMs !== undefined) this.limit.refused(source, busyForMs)
    else if (outcome.is === 'granted' || refusalOf(outcome) !== undefined) this.limit.lift()
    return outcome
  }

  /** Revokes tokens (RFC 7009). Returns the failures, or undefined without REVOCATION_URL; never rejects. */
  revoke(tokens: RevokedTokens): Promise<readonly RevocationFailure[]> | undefined {
    return this.#revocations.revoke(tokens)
  }

  /** Waits for running revocations, then closes all connections to the provider. */
  async close(): Promise<void> {
    await this.#revocations.finished()
    await this.#traffic.close()
  }

  /** A provider that does not respond to logins, of which strangers can make any number, may not take every descriptor. */
  async #forLogin<Outcome>(request: () => Promise<Outcome>): Promise<Outcome | FailedOutcome> {
    if (!this.#permits.acquire(LOGINS, this.#maxLogins)) {
      return { is: 'unavailable', code: 'try_later', cause: new Error('too many logins are waiting for the provider') }
    }
    try {
      return await request()
    } finally {
      this.#permits.release(LOGINS)
    }
  }

  /**
   * How old the user's authentication may be now (seconds), with a max_age in AUTHORIZATION_PARAMS. Checked because a browser
   * can remove that from its address (OpenID Connect Core §3.1.3.7). It limits the age at the start of the login, so the time
   * since then is added.
   */
  #maxAge(startedAt: number): number | undefined {
    const [, seconds] = this.#config.authorizationParams.find(([name]) => name === 'max_age') ?? []
    if (this.openId === undefined || seconds === undefined) return undefined
    return Number(seconds) + Math.max(0, Math.ceil((storeNow() - startedAt) / 1000))
  }

  async #refreshed(refreshToken: string, sub: string | undefined): Promise<GrantOutcome> {
    let idToken: unknown
    const outcome = await this.#grant(async () => {
      const tokens = await client.refreshTokenGrant(this.#refresher, refreshToken)
      idToken = tokens[REFRESHED_ID_TOKEN]
      return tokens
    })
    if (outcome.is !== 'granted' || idToken === undefined || this.openId?.idTokens.names(idToken, sub)) return outcome
    // The session cannot go on with the tokens of another user, and its own are used up.
    void this.revoke(outcome.grant)
    return {
      is: 'refused',
      code: 'invalid_grant',
      cause: new Error('the ID token of a refresh is not of this provider and user'),
    }
  }

  /** openid-client compares exactly, so an `iss` that differs from AUTH_URL by a final slash takes its form. */
  #normalizeIssuer(callback: URLSearchParams): void {
    const [received, ...more] = callback.getAll('iss')
    if (more.length === 0 && isIssuer(this.#config, received)) callback.set('iss', this.#config.issuer)
  }

  async #grant(request: () => Promise<client.TokenEndpointResponse>): Promise<GrantOutcome> {
    try {
      return granted(await request(), this.#config.tokenFallbackMs)
    } catch (error) {
      return translate(error)
    }
  }
}

/** Judges the provider by a refresh. A refusal, and a 429, concern the user who got them. */
function verdictOf(outcome: GrantOutcome): Verdict {
  if (outcome.is === 'granted') return 'works'
  if (refusalOf(outcome) !== undefined) return 'answers'
  return busyTime(outcome) === undefined ? 'fails' : 'nothing'
}

function busyTime(outcome: GrantOutcome): number | undefined {
  return outcome.is === 'unavailable' ? outcome.busyForMs : undefined
}

/** A client that judges ID tokens by the store's clock. openid-client takes the difference when a client is made. */
function bySkew(make: (seconds: number) => client.Configuration): () => client.Configuration {
  let latest = { seconds: 0, client: make(0) }
  return () => {
    const seconds = storeAheadSeconds()
    if (seconds !== latest.seconds) latest = { seconds, client: make(seconds) }
    return latest.client
  }
}

/**
 * Whether an `iss` is that of the provider. RFC 9207 §2.4 compares it exactly, but AUTH_URL is stored without the trailing
 * slash that some issuers have.
 */
export function isIssuer({ issuer, isIssuerNamed }: ProviderConfig, received: unknown): boolean {
  return received === issuer || (!isIssuerNamed && received === `${issuer}/`)
}
