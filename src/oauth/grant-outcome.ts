import * as client from 'openid-client'
import { UnusableResponse } from './token-response.ts'

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

/** The outcome of a request to the token endpoint. `cause` is for the log. */
export type GrantOutcome =
  | { readonly is: 'granted'; readonly grant: TokenGrant }
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
  constructor(error: string) {
    super(`the provider returned ${/^[\w.:-]{1,64}$/.test(error) ? error : 'an unreadable error'}`)
    this.name = 'ProviderRefusal'
  }
}

/**
 * Maps the `error` of a callback (RFC 6749 §4.1.2.1). Anybody can write such a link, so `invalid_client`, which alerts the
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

/** Maps the `error` of a token response (RFC 6749 §5.2). */
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

/** Maps errors of openid-client and fetch(), by class and code. @throws any other error unchanged */
export function translate(error: unknown): GrantOutcome {
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

function unavailable(cause: unknown): GrantOutcome {
  return { is: 'unavailable', code: 'provider_unavailable', cause }
}
