import * as client from 'openid-client'
import { UnusableResponse } from './token-response.ts'

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
  /** `try_later`: it has too much to do, and has said so; `busyForMs` is how long it wants to be left alone, 0 if it did not say. */
  | {
      readonly is: 'unavailable'
      readonly code: 'provider_unavailable' | 'try_later'
      readonly cause: unknown
      readonly busyForMs?: number
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

/** Errors of openid-client and fetch() end here, told apart by class and code. @throws what is neither's */
export function translate(error: unknown): GrantOutcome {
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
    if (cause instanceof UnusableResponse) {
      const { busyForMs } = cause
      return busyForMs === undefined
        ? away(error)
        : { is: 'unavailable', code: 'try_later', cause: error, busyForMs }
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
