import type { CookieSerializeOptions } from '@fastify/cookie'

/** A cookie as it stands in a Cookie header, undecoded. */
export interface RawCookie {
  readonly name: string
  readonly value: string
}

/** Values of the cookies called `name` in a Cookie header (RFC 6265 §4.2.1), undecoded. */
export function cookieValues(header: string, name: string): string[] {
  return pairsStartingWith(header, `${name}=`).map((pair) => pair.slice(name.length + 1))
}

/** The cookies of a Cookie header whose names start with `prefix`. */
export function cookiesNamed(header: string, prefix: string): RawCookie[] {
  return pairsStartingWith(header, prefix).map((pair) => {
    const equals = pair.indexOf('=')
    return equals === -1
      ? { name: pair, value: '' }
      : { name: pair.slice(0, equals), value: pair.slice(equals + 1) }
  })
}

/** Attributes of a cookie that only this host sees, over https alone unless told otherwise; a lifetime of 0 deletes it. */
export function cookieAttributes(
  sameSite: 'strict' | 'lax',
  secure: boolean,
  lifetimeMs: number,
): CookieSerializeOptions {
  const maxAge = Math.ceil(lifetimeMs / 1000)
  return { path: '/', httpOnly: true, secure, sameSite, maxAge, encode: String }
}

function pairsStartingWith(header: string, start: string): string[] {
  const pairs: string[] = []
  for (let at = header.indexOf(start); at !== -1; at = header.indexOf(start, at + 1)) {
    if (!isStartOfPair(header, at)) continue
    let end = header.indexOf(';', at)
    if (end === -1) end = header.length
    while (isBlank(header[end - 1])) end--
    pairs.push(header.slice(at, end))
  }
  return pairs
}

function isStartOfPair(header: string, at: number): boolean {
  let before = at - 1
  while (isBlank(header[before])) before--
  return before < 0 || header[before] === ';'
}

/**
 * Not trim(): it takes 0xA0 for a blank as well. A sibling host may set a cookie for the whole site whose name starts
 * with that byte, browsers send it as it is, and without the byte the name would be one of ours.
 */
function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}
