import * as client from 'openid-client'
import { UnusableResponse } from './provider-response.ts'

/** Characters that fit into a header. A token with any other could never be used. */
const TOKEN = /^[\x21-\x7e]+$/

/** Tokens that the provider issued. Times are epoch ms. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string
  /** Absent if it is the requested or previously granted scope (RFC 6749 §5.1, §6). */
  readonly scope?: string
  /** The provider named no usable lifetime, so `expiresAt` is based on TOKEN_FALLBACK_SECONDS. */
  readonly lifetimeGuessed: boolean
}

/** The outcome of a request to the token endpoint. */
export type GrantOutcome = { readonly is: 'granted'; readonly grant: TokenGrant } | FailedOutcome

/** Why the provider did not do what this client asked for. `cause` is for the log. */
export type FailedOutcome =
  | { readonly is: 'refused'; readonly code: RefusalCode; readonly cause: unknown }
  /** `try_later`: the provider is overloaded and asks to be left alone for `busyForMs` (0 if it names no time). */
  | {
      readonly is: 'unavailable'
      readonly code: 'provider_unavailable' | 'try_later'
      readonly cause: unknown
      readonly busyForMs?: number
    }

/** Why the provider refused. */
export type RefusalCode = 'access_denied' | 'invalid_grant' | 'invalid_client' | 'login_failed'

/** Carries the provider's error code (RFC 6749 §5.2), and nothing else of its response, into the log. */
export class ProviderRefusal extends Error {
  /** The error code, or a text that says that there is none to read. */
  readonly error: string

  constructor(error: string) {
    const readable = /^[\w.:-]{1,64}$/.test(error) ? error : 'an unreadable error'
    super(`the provider returned ${readable}`)
    this.name = 'ProviderRefusal'
    this.error = readable
  }
}

/**
 * Maps the `error` of a callback (RFC 6749 §4.1.2.1). A stranger can write such a link, so `invalid_client`, which alerts the
 * operator, is not accepted from it.
 */
export function callbackError(error: string): Exclude<RefusalCode, 'invalid_client'> | 'provider_unavailable' {
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

/**
 * Maps the `error` of a response to this client (RFC 6749 §5.2). An `access_denied` is the provider's own refusal here: a
 * user who cancels never gets this far.
 */
function tokenError(error: string): FailedOutcome {
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

/** Reads a successful token response. @param fallbackMs the lifetime of tokens that name no usable one */
export function granted(response: client.TokenEndpointResponse, fallbackMs: number): GrantOutcome {
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
    expiresAt: Date.now() + (lifetime === undefined ? fallbackMs : lifetime * 1000),
    ...(response.refresh_token === undefined ? {} : { refreshToken: response.refresh_token }),
    ...(response.scope === undefined ? {} : { scope: response.scope }),
    lifetimeGuessed: lifetime === undefined,
  }
  return { is: 'granted', grant }
}

/** Maps errors of openid-client and fetch(), by class and code. @throws any other error unchanged */
export function translate(error: unknown): FailedOutcome {
  if (error instanceof client.AuthorizationResponseError) {
    const code = callbackError(error.error)
    const cause = new ProviderRefusal(error.error)
    return code === 'provider_unavailable' ? { is: 'unavailable', code, cause } : { is: 'refused', code, cause }
  }
  if (error instanceof client.ResponseBodyError) return tokenError(error.error)
  if (error instanceof client.ClientError) {
    const { cause } = error
    if (cause instanceof UnusableResponse) {
      const { busyForMs } = cause
      return busyForMs === undefined
        ? unavailable(error)
        : { is: 'unavailable', code: 'try_later', cause: error, busyForMs }
    }
    const isTimeout = error.code === 'OAUTH_TIMEOUT' || error.code === 'OAUTH_ABORT'
    return isTimeout ? unavailable(error) : { is: 'refused', code: 'login_failed', cause: error }
  }
  // fetch() reports a network failure as a TypeError without a code of its own.
  if (error instanceof TypeError && !('code' in error)) return unavailable(error)
  throw error
}

function unavailable(cause: unknown): FailedOutcome {
  return { is: 'unavailable', code: 'provider_unavailable', cause }
}
