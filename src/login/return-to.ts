import { RESERVED_PREFIXES } from '../http/known-paths.ts'
import type { RefusalCode } from '../oauth/grant-outcome.ts'

const MAX_LENGTH = 2048
const RESERVED = new RegExp(`^(${RESERVED_PREFIXES.join('|')})(/|$)`, 'i')

/** Whether a login started at `/auth/login` or `/auth/signup`. */
export type Flow = 'login' | 'signup'

/** Why a login failed: the `auth_error` that the frontend receives. */
export type AuthError = RefusalCode | 'state_mismatch' | 'provider_unavailable' | 'try_later'

/**
 * Where the browser goes after a login: the requested path with query and fragment, if it is on the frontend's own origin
 * and not reserved, else `/`.
 * @param values every `return_to` of the query
 */
export function safeReturnTo(values: readonly string[], frontendUrl: string): string {
  const [value] = values
  if (value === undefined || values.length > 1 || value.length > MAX_LENGTH) return '/'
  // new URL() alone is not safe: it reads '//evil' and '/\evil' as another host, and silently drops tabs and line breaks.
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(value)) return '/'
  const url = URL.parse(value, frontendUrl)
  if (url === null || url.origin !== frontendUrl) return '/'
  // Dot segments may resolve to '//host' or a reserved path, and a later reader may decode an encoded letter.
  return url.pathname.startsWith('//') || RESERVED.test(decodedOnce(url.pathname)) ? '/' : value
}

/** The frontend URL that reports a failed login, with flow and return path if they are known. */
export function failureUrl(frontendUrl: string, error: AuthError, known?: { flow: Flow; returnTo: string }): string {
  const query = new URLSearchParams({
    auth_error: error,
    ...(known && { flow: known.flow, return_to: known.returnTo }),
  })
  return `${frontendUrl}/?${query.toString()}`
}

/** Decodes escapes of ASCII characters. Unlike decodeURIComponent(), it does not throw on malformed ones. */
function decodedOnce(path: string): string {
  return path.replace(/%([0-7][0-9a-f])/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
