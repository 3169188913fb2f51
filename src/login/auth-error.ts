import type { RefusalCode } from '../oauth/grant-outcome.ts'

/** Whether a login started at `/auth/login` or `/auth/signup`. */
export type Flow = 'login' | 'signup'

/** Why a login failed: the `auth_error` that the frontend receives. */
export type AuthError = RefusalCode | 'state_mismatch' | 'provider_unavailable' | 'try_later'

/** The frontend URL that reports a failed login, with flow and return path if they are known. */
export function failureUrl(frontendUrl: string, error: AuthError, known?: { flow: Flow; returnTo: string }): string {
  const query = new URLSearchParams({
    auth_error: error,
    ...(known && { flow: known.flow, return_to: known.returnTo }),
  })
  return `${frontendUrl}/?${query.toString()}`
}
