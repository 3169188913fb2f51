import type { RefusalCode } from '../oauth/grant-outcome.ts'

/** Log in or sign up. */
export type Flow = 'login' | 'signup'

/** Why a login did not succeed, as the frontend is told in `auth_error`. */
export type AuthError = RefusalCode | 'state_mismatch' | 'provider_unavailable' | 'try_later'

/** Where a login that failed returns to; flow and path where they are known. */
export function failureUrl(
  frontendUrl: string,
  error: AuthError,
  known?: { flow: Flow; returnTo: string },
): string {
  const query = new URLSearchParams({
    auth_error: error,
    ...(known && { flow: known.flow, return_to: known.returnTo }),
  })
  return `${frontendUrl}/?${query.toString()}`
}
