import { RESERVED_PREFIXES } from '../http/known-paths.ts'

const MAX_LENGTH = 2048
const RESERVED = new RegExp(`^(${RESERVED_PREFIXES.join('|')})(/|$)`, 'i')

/**
 * Where the browser goes after a login: a path, with query and fragment, of the frontend's own origin, as it was
 * asked for. Whatever else was asked for becomes `/`.
 * @param values every `return_to` of the query
 */
export function safeReturnTo(values: readonly string[], frontendUrl: string): string {
  const [value] = values
  if (value === undefined || values.length > 1 || value.length > MAX_LENGTH) return '/'
  // Not new URL() alone: it takes '//evil' and '/\evil' as another host, and drops tabs and line breaks unasked.
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(value)) return '/'
  const url = URL.parse(value, frontendUrl)
  if (url === null || url.origin !== frontendUrl) return '/'
  // Dot segments may lead to '//host' or to a reserved path, and an encoded letter may be decoded further on.
  return url.pathname.startsWith('//') || RESERVED.test(decodedOnce(url.pathname)) ? '/' : value
}

/** Escapes of ASCII decoded, whatever else is wrong with the others. */
function decodedOnce(path: string): string {
  return path.replace(/%([0-7][0-9a-f])/gi, (_escape, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}
