import type { CookieSerializeOptions, Signer } from '@fastify/cookie'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookieValues } from '../http/cookies.ts'
import { sessionKey } from '../store/keys.ts'
import { createSigner } from './signer.ts'

/** Well over a signed id; longer values are not worth an HMAC. */
const MAX_VALUE_LENGTH = 256

/** Two cookies of the name are already one too many; more are not worth a round trip each. */
const MAX_NAMED = 2

/** A session id that a request names. */
export interface NamedSession {
  readonly id: string
  /** Its signature holds; else anybody may have made it up. */
  readonly isAuthentic: boolean
}

/** The cookie that carries a session id, signed, and nothing else (docs/reference.md, Cookies). */
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
  attributes(maxAgeMs = 0): CookieSerializeOptions {
    return cookieAttributes('strict', this.#secure, maxAgeMs)
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

  /**
   * The sessions that a request names, to be ended. One that is not signed with a secret known here is named too, since
   * knowing a 256-bit id is proof enough for that; but only where it is alone, as it is in a browser.
   */
  named(header: string | undefined): NamedSession[] {
    const values = this.#values(header).slice(0, MAX_NAMED)
    const named = values.map((value) => {
      const id = value.slice(0, Math.max(0, value.lastIndexOf('.')))
      return { id, isAuthentic: this.verify(value) !== undefined }
    })
    return named.filter(({ isAuthentic }) => isAuthentic || named.length === 1)
  }

  #values(header: string | undefined): string[] {
    return header === undefined ? [] : cookieValues(header, this.name)
  }
}
