import * as client from 'openid-client'
import type { LoginIdentity } from './login-identity.ts'
import { isUsable, UnusableResponse } from './provider-response.ts'
import { storeNow } from '../time/store-time.ts'

/** Tokens that the provider issued. Times are epoch ms. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string
  /** Absent if it is the requested or previously granted scope (RFC 6749 §5.1, §6). */
  readonly scope?: string
  /** The provider named no usable lifetime, so `expiresAt` is based on TOKEN_FALLBACK_SECONDS. */
  readonly lifetimeGuessed: boolean
  /** The user of the tokens; only at a login with OpenID Connect. */
  readonly identity?: LoginIdentity
}

/** The outcome of a request to the token endpoint. */
export type GrantOutcome = { readonly is: 'granted'; readonly grant: TokenGrant } | FailedOutcome

/** Why the provider did not do what this client asked for. `cause` is for the log. */
export type FailedOutcome =
  | { readonly is: 'refused'; readonly code: RefusalCode; readonly cause: unknown }
  /** `try_later`: the provider limits this client, or the user, and asks to be left alone for `busyForMs`. */
  | {
      readonly is: 'unavailable'
      readonly code: 'provider_unavailable' | 'try_later'
      readonly cause: unknown
      readonly busyForMs?: number
    }

/** Why the provider refused. */
export type RefusalCode = 'access_denied' | 'invalid_grant' | 'invalid_client' | 'login_failed'

/** Carries the provider's error and its description (RFC 6749 §5.2), and nothing else of its response, into the log. */
export class ProviderRefusal extends Error {
  /** The error code, or a text that says that there is none to read. */
  readonly error: string
  /** For the log: whatever the descriptions say, refusals with one error are of one kind. Never a code of the system. */
  readonly code: string
  /** The provider's own words about it, without the secrets of the request. */
  readonly description: string | undefined

  constructor(error: string, description?: string) {
    const readable = /^[\w.:-]{1,64}$/.test(error) ? error : 'an unreadable error'
    super(`the provider returned ${readable}${description ? `: ${description}` : ''}`)
    this.name = 'ProviderRefusal'
    this.error = readable
    this.code = `provider:${readable}`
    this.description = description
  }
}

type FailureCode = FailedOutcome['code']

/**
 * The `error` of a callback (RFC 6749 §4.1.2.1). A stranger can write such a link, so `invalid_client`, which alerts the
 * operator, is not accepted from it.
 */
const CALLBACK_ERRORS: ReadonlyMap<string, Exclude<FailureCode, 'invalid_client'>> = new Map([
  ['access_denied', 'access_denied'],
  ['request_denied', 'access_denied'],
  ['invalid_grant', 'invalid_grant'],
  ['server_error', 'provider_unavailable'],
  ['temporarily_unavailable', 'provider_unavailable'],
])

/**
 * The `error` of a response to this client (RFC 6749 §5.2). An `access_denied` is the provider's own refusal here: a user
 * who cancels never gets this far.
 */
const RESPONSE_ERRORS: ReadonlyMap<string, FailureCode> = new Map([
  ['invalid_grant', 'invalid_grant'],
  ['invalid_client', 'invalid_client'],
  ['unauthorized_client', 'invalid_client'],
  ['server_error', 'provider_unavailable'],
  ['temporarily_unavailable', 'provider_unavailable'],
])

/** Errors of a response (RFC 6749 §5.2, RFC 8628 §3.5) that say nothing of the token which was sent. */
const OF_EVERYBODY: ReadonlySet<string> = new Set([
  'invalid_client',
  'unauthorized_client',
  'temporarily_unavailable',
  'slow_down',
  'server_error',
])

/** Why a login failed, by the `error` of its callback. */
export function callbackError(error: string): FailureCode {
  return CALLBACK_ERRORS.get(error) ?? 'login_failed'
}

/** Reads a successful token response. @param fallbackMs the lifetime of tokens that name no usable one */
export function granted(response: client.TokenEndpointResponse, fallbackMs: number): GrantOutcome {
  const { access_token: accessToken, token_type: type, expires_in: lifetime } = response
  if (type !== 'bearer' || !isUsable(accessToken)) {
    const why = type === 'dpop' ? ': it is bound to a key (DPoP)' : ''
    return loginFailed(`the access token is not a usable bearer token${why}`)
  }
  const grant: TokenGrant = {
    accessToken,
    expiresAt: storeNow() + (lifetime === undefined ? fallbackMs : Math.floor(lifetime * 1000)),
    ...(response.refresh_token === undefined ? {} : { refreshToken: response.refresh_token }),
    ...(response.scope === undefined ? {} : { scope: response.scope }),
    lifetimeGuessed: lifetime === undefined,
  }
  return { is: 'granted', grant }
}

/** Maps errors of openid-client and fetch(), by class and code. @throws any other error unchanged */
export function translate(error: unknown): FailedOutcome {
  if (error instanceof client.AuthorizationResponseError) {
    return failed(callbackError(error.error), new ProviderRefusal(error.error))
  }
  if (error instanceof client.ResponseBodyError) {
    const { error: code, error_description: description } = error
    return failed(RESPONSE_ERRORS.get(code) ?? 'login_failed', new ProviderRefusal(code, description))
  }
  if (error instanceof client.ClientError) {
    const { cause, code } = error
    if (cause instanceof UnusableResponse) {
      const { busyForMs } = cause
      if (busyForMs !== undefined) return { is: 'unavailable', code: 'try_later', cause: error, busyForMs }
      return failed('provider_unavailable', error)
    }
    // Without the cause of this error, which may quote the ID token.
    if (code === 'OAUTH_PARSE_ERROR') return failed('login_failed', new Error(error.message))
    const isTimeout = code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT'
    return failed(isTimeout ? 'provider_unavailable' : 'login_failed', error)
  }
  // fetch() reports a network failure as a TypeError without a code of its own.
  if (error instanceof TypeError && !('code' in error)) return failed('provider_unavailable', error)
  throw error
}

/**
 * The code of a refusal that concerns the session whose token was to be refreshed, and nobody else. Undefined for any other
 * outcome: what the provider says of this client, or of itself, would meet every session.
 */
export function refusalOf(outcome: GrantOutcome): string | undefined {
  if (outcome.is !== 'refused') return undefined
  if (outcome.code === 'invalid_grant') return outcome.code
  const { cause } = outcome
  return cause instanceof ProviderRefusal && !OF_EVERYBODY.has(cause.error) ? cause.error : undefined
}

/** The outcome of a login that this server itself refuses. @param why for the log, without secrets */
export function loginFailed(why: string, cause?: unknown): FailedOutcome {
  return { is: 'refused', code: 'login_failed', cause: new Error(why, { cause }) }
}

function failed(code: FailureCode, cause: unknown): FailedOutcome {
  return code === 'provider_unavailable' || code === 'try_later'
    ? { is: 'unavailable', code, cause }
    : { is: 'refused', code, cause }
}
