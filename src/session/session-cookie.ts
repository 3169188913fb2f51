import type { CookieSerializeOptions, Signer } from '@fastify/cookie'
import type { Config } from '../config.ts'
import { sessionKey } from '../store/keys.ts'
import { createSigner } from '../store/signer.ts'

/** Well over a signed id; longer values are not worth an HMAC. */
const MAX_VALUE_LENGTH = 256

/** Two cookies of the name are already one too many; more are not worth a round trip each. */
const MAX_IDS = 4

/** The cookie that carries a session id, signed, and nothing else (CONTRACT: cookies). */
export class SessionCookie {
  readonly name: string
  readonly signer: Signer
  readonly #secure: boolean

  constructor(cookies: Config['cookies'], secrets: readonly string[]) {
    this.name = `${cookies.prefix}session`
    this.signer = createSigner(secrets, 'session cookie')
    this.#secure = cookies.secure
  }

  /** Attributes of the cookie; without `maxAgeMs` those that delete it. */
  attributes(maxAgeMs?: number): CookieSerializeOptions {
    return {
      path: '/',
      httpOnly: true,
      secure: this.#secure,
      sameSite: 'strict',
      maxAge: maxAgeMs === undefined ? 0 : Math.ceil(maxAgeMs / 1000),
      encode: String,
    }
  }

  /** The id of a value whose signature holds, else undefined. */
  verify(value: string): string | undefined {
    if (value.length > MAX_VALUE_LENGTH) return undefined
    const { valid, value: id } = this.signer.unsign(value)
    return valid && id !== null ? id : undefined
  }

  /** The value that a request carries under the cookie's name. Two are one too many: the request is anonymous. */
  value(header: string | undefined): string | undefined {
    const values = this.#values(header)
    return values.length === 1 ? values[0] : undefined
  }

  /** Store key of the session that a request carries, if its cookie is good. */
  key(header: string | undefined): string | undefined {
    const value = this.value(header)
    const id = value === undefined ? undefined : this.verify(value)
    return id === undefined ? undefined : sessionKey(id)
  }

  /** The ids named by a request, signed or not: knowing a 256-bit id is proof enough to end its session. */
  ids(header: string | undefined): string[] {
    return this.#values(header)
      .slice(0, MAX_IDS)
      .map((value) => value.slice(0, Math.max(0, value.lastIndexOf('.'))))
  }

  #values(header: string | undefined): string[] {
    return header === undefined ? [] : cookieValues(header, this.name)
  }
}

/** Raw values of the cookies called `name` in a Cookie header (RFC 6265 §4.2.1), undecoded. */
export function cookieValues(header: string, name: string): string[] {
  const values: string[] = []
  const wanted = `${name}=`
  for (let at = header.indexOf(wanted); at !== -1; at = header.indexOf(wanted, at + 1)) {
    if (!startsPair(header, at)) continue
    const from = at + wanted.length
    const end = header.indexOf(';', from)
    values.push(header.slice(from, end === -1 ? undefined : end).trim())
  }
  return values
}

function startsPair(header: string, at: number): boolean {
  for (let before = at - 1; before >= 0; before--) {
    const character = header[before]
    if (character === ';') return true
    if (character !== ' ' && character !== '\t') return false
  }
  return true
}
