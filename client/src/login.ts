/** Log in or sign up. */
export type Flow = 'login' | 'signup'

/** Why a login did not succeed. A newer server may have more: treat those as `login_failed`. */
export type AuthErrorCode =
  | 'access_denied'
  | 'state_mismatch'
  | 'invalid_grant'
  | 'invalid_client'
  | 'provider_unavailable'
  | 'try_later'
  | 'login_failed'

/** What a login starts with. */
export interface LoginOptions {
  /** Path of the page to come back to, with query and fragment; this page unless given. */
  readonly returnTo?: string
  /** For a sign-up: `sidc`, `utm_campaign`, `utm_medium` and `utm_source` of a partner's link, unchanged, all or none. */
  readonly partner?: Readonly<Record<string, string>>
}

/** A login that did not succeed, and where the user may try again. Let the user click: never go there by yourself. */
export interface AuthError {
  readonly code: AuthErrorCode | (string & {})
  readonly flow: Flow
  /** The same again. */
  readonly againUrl: string
  /** A login, also after a sign-up: the account may exist already. */
  readonly loginUrl: string
}

/** The address that logs the user in, or signs them up, and brings them back. */
export function loginUrl(base: string, flow: Flow = 'login', options: LoginOptions = {}): string {
  const { returnTo = location.pathname + location.search + location.hash, partner } = options
  return `${base}/auth/${flow}?${new URLSearchParams({ return_to: returnTo, ...partner })}`
}

/** Why the last login failed, if it did. Takes the code out of the address, so a second call finds nothing. */
export function takeAuthError(base: string): AuthError | undefined {
  const query = new URLSearchParams(location.search)
  const code = query.get('auth_error')
  if (code === null) return undefined
  history.replaceState(history.state, '', location.pathname)
  const flow = query.get('flow') === 'signup' ? 'signup' : 'login'
  // Anybody can write such an address, so it leads nowhere but back to the server, which checks the path again.
  const options = { returnTo: query.get('return_to') ?? '/' }
  return { code, flow, againUrl: loginUrl(base, flow, options), loginUrl: loginUrl(base, 'login', options) }
}
