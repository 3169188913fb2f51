const MAX_LENGTH = 2048
const RESERVED = /^\/(api|auth|ws)(\/|$)/i

/**
 * Where the browser goes after a login: a path, with query and fragment, of the frontend's own origin. Whatever else
 * was asked for becomes `/`.
 * @param values every `return_to` of the query
 */
export function safeReturnTo(values: readonly string[], frontendUrl: string): string {
  const [value] = values
  if (value === undefined || values.length > 1 || value.length > MAX_LENGTH) return '/'
  // Not new URL() alone: it takes '//evil' and '/\evil' as another host, and drops tabs and line breaks unasked.
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(value)) return '/'
  const url = URL.parse(value, frontendUrl)
  if (url === null || url.origin !== frontendUrl) return '/'
  const path = url.pathname + url.search + url.hash
  // Dot segments may have left '//host' or a reserved path behind, and an encoded one may be decoded further on.
  if (/^\/[/\\]/.test(path) || RESERVED.test(decoded(url.pathname)) || path.length > MAX_LENGTH) return '/'
  return path
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
