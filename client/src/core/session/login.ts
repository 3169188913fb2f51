/** Which form the user sees first: that of an existing account or of a new one. */
export type Flow = 'login' | 'signup'

/**
 * Why a login failed. A newer server may send other codes: treat them as `login_failed`.
 * - `access_denied`: the user cancelled. Nothing is wrong.
 * - `state_mismatch`: the login took too long, or the user finished it in another browser.
 * - `invalid_grant`: the provider no longer accepts the login.
 * - `invalid_client`: the provider rejects the server. Another attempt does not help; the operator must act.
 * - `provider_unavailable`: the provider cannot be reached. Offer another attempt in a moment.
 * - `try_later`: the server is overloaded or cannot store logins. Offer another attempt in a minute.
 * - `login_failed`: anything else.
 */
export type AuthErrorCode =
  | 'access_denied'
  | 'state_mismatch'
  | 'invalid_grant'
  | 'invalid_client'
  | 'provider_unavailable'
  | 'try_later'
  | 'login_failed'

/** Options of `login()`, `signup()` and `loginUrl()`. */
export interface LoginOptions {
  /** The path that the user returns to, with query and fragment, at most 2048 characters; the current page by default. */
  readonly returnTo?: string | undefined
  /** For a sign-up: all four of `sidc`, `utm_campaign`, `utm_medium` and `utm_source` from the partner's link, unchanged. */
  readonly partner?: Readonly<Record<string, string>> | undefined
}

/**
 * A failed login, and where the user can try again. Show the addresses as links and let the user click: a page that
 * starts the next login by itself can loop.
 */
export interface AuthError {
  readonly code: AuthErrorCode | (string & {})
  /** What the user had started. */
  readonly flow: Flow
  /** The address that starts the same again. */
  readonly againUrl: string
  /** The address of a login. Offer it after a failed sign-up too, since the account may already exist. */
  readonly loginUrl: string
}

/** The address that starts a login or a sign-up. */
export function loginUrl(base: string, flow: Flow = 'login', options: LoginOptions = {}): string {
  // With what the server has added, the user would come back to a page that says that this login has failed, or is over.
  const {
    returnTo = location.pathname + location.search.replace(/^.(auth_error|logged_out)=.*/, '') + location.hash,
    partner,
  } = options
  return `${base}/auth/${flow}?${new URLSearchParams({ return_to: returnTo, ...partner })}`
}

/** Why the last login failed, if it did. Removes the code from the address of the page, so a second call finds none. */
export function takeAuthError(base: string): AuthError | undefined {
  const query = new URLSearchParams(location.search)
  const code = query.get('auth_error')
  if (!code) return undefined
  // Alone, a path that begins with two slashes would name a host.
  history.replaceState(history.state, '', '/.' + location.pathname)
  const flow = query.get('flow') === 'signup' ? 'signup' : 'login'
  // An attacker can forge this address, so return_to is only sent to the server, which validates it again.
  const options = { returnTo: query.get('return_to') ?? '/' }
  return { code, flow, loginUrl: loginUrl(base, 'login', options), againUrl: loginUrl(base, flow, options) }
}
