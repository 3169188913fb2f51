import type { CookieSerializeOptions } from '@fastify/cookie'

/** Values of the cookies called `name` in a Cookie header (RFC 6265 §4.2.1), undecoded. */
export function cookieValues(header: string, name: string): string[] {
  return cookiesNamed(header, `${name}=`).map(({ value }) => value)
}

/** The cookies of a Cookie header that start with `prefix`. Their values are undecoded. */
export function cookiesNamed(header: string, prefix: string): { name: string; value: string }[] {
  const cookies: { name: string; value: string }[] = []
  for (let at = header.indexOf(prefix); at !== -1; at = header.indexOf(prefix, at + 1)) {
    if (!isStartOfCookie(header, at)) continue
    let end = header.indexOf(';', at)
    if (end === -1) end = header.length
    while (isBlank(header[end - 1])) end--
    const cookie = header.slice(at, end)
    const equals = cookie.indexOf('=')
    const nameEnd = equals === -1 ? cookie.length : equals
    cookies.push({ name: cookie.slice(0, nameEnd), value: cookie.slice(nameEnd + 1) })
  }
  return cookies
}

/**
 * Attributes of a cookie that only this host receives and no script can read.
 * @param secure whether browsers send it over https only
 * @param lifetimeMs 0 deletes the cookie
 */
export function cookieAttributes(
  sameSite: 'strict' | 'lax',
  secure: boolean,
  lifetimeMs: number,
): CookieSerializeOptions {
  const maxAge = Math.round(lifetimeMs / 1000)
  return { path: '/', httpOnly: true, secure, sameSite, maxAge, encode: String }
}

function isStartOfCookie(header: string, at: number): boolean {
  let before = at - 1
  while (isBlank(header[before])) before--
  return before < 0 || header[before] === ';'
}

/**
 * trim() would also strip 0xA0. A sibling host may set a cookie for the whole site whose name starts with that byte.
 * Browsers send the byte, and without it the name would be one of this server's own.
 */
function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}
