import { createHmac, createSecretKey, hkdfSync, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { CookieSerializeOptions, UnsignResult } from '@fastify/cookie'
import { derived, type Changing } from '../config/changing.ts'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookieValues } from '../http/cookies.ts'
import { sessionKey } from '../store/keys.ts'

/** Well over the length of a signed id. The signature of a longer value is not computed. */
const MAX_VALUE_LENGTH = 256
/** A browser has one session cookie. Of more, each of which costs a round trip, only the first two are looked up. */
const MAX_NAMED = 2

/** A session id in a request. */
export interface NamedSession {
  readonly id: string
  /** The signature is valid; otherwise, the id may be made up. */
  readonly isAuthentic: boolean
}

/** The cookie that carries a session id, signed, and nothing else (docs/reference.md, Cookies). */
export class SessionCookie {
  readonly name: string
  readonly #secrets: Changing<readonly string[]>
  readonly signer: CookieSigner
  readonly #secure: boolean

  constructor(cookies: Config['cookies'], secrets: Changing<readonly string[]>) {
    this.name = `${cookies.prefix}session`
    this.#secrets = secrets
    this.signer = createSigner(secrets, 'session cookie')
    this.#secure = cookies.secure
  }

  /** What is made once for all signatures that are valid now, and again when the secrets change. */
  perSecrets<Made>(make: () => Made): () => Made {
    return derived(this.#secrets, make)
  }

  /** Attributes of the cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number): CookieSerializeOptions {
    return cookieAttributes('strict', this.#secure, lifetimeMs)
  }

  /** The id in a cookie value; undefined if the signature is not valid. */
  verify(value: string): string | undefined {
    if (value.length > MAX_VALUE_LENGTH) return undefined
    const { valid, value: id } = this.signer.unsign(value)
    return valid && id !== null ? id : undefined
  }

  /** The value of the cookie in a request. Undefined if there are several, which makes the request anonymous. */
  value(header: string | undefined): string | undefined {
    const values = this.#values(header)
    return values.length === 1 ? values[0] : undefined
  }

  /** Store key of the session in a request; undefined if the cookie is not valid. */
  key(header: string | undefined): string | undefined {
    const value = this.value(header)
    const id = value === undefined ? undefined : this.verify(value)
    return id === undefined ? undefined : sessionKey(id)
  }

  /**
   * The sessions that a logout request may end. An id without a valid signature is included, because knowing a 256-bit id
   * is proof enough for ending its session, but only if it is the only one, as in a browser.
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

/** Signs cookie values, and verifies them, with the secrets of the moment. */
export interface CookieSigner {
  /** @returns the value, a dot, and the signature: 43 characters of base64 */
  sign(value: string): string
  unsign(signed: string): UnsignResult
}

/**
 * Creates a signer of cookie values (HMAC-SHA256).
 * @param secrets the first one signs, all of them verify
 */
export function createSigner(secrets: Changing<readonly string[]>, purpose: string): CookieSigner {
  const keys = signingKeys(secrets, purpose)
  return {
    sign: (value) => `${value}.${signatureOf(value, keys()[0])}`,
    unsign(signed) {
      const dot = signed.lastIndexOf('.')
      const value = signed.slice(0, Math.max(0, dot))
      const signature = signed.slice(dot + 1)
      const found = keys().findIndex((key) => isSame(signature, signatureOf(value, key)))
      return found === -1 ? { valid: false, renew: false, value: null } : { valid: true, renew: found > 0, value }
    },
  }
}

/** A key for each secret. */
type SigningKeys = readonly [first: KeyObject, ...others: KeyObject[]]

/**
 * Derives keys for signatures. Each purpose has its own, so that what is signed for one is not valid for another. They are no
 * buffers: in some versions of Node (24.21) createHmac looks for a key object in these, and catches an exception each time.
 */
export function signingKeys(secrets: Changing<readonly string[]>, purpose: string): () => SigningKeys {
  const keyOf = (secret: string): KeyObject => createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', purpose, 32)))
  return derived(secrets, ([first, ...others]) => {
    if (first === undefined) throw new Error('there is no secret')
    return [keyOf(first), ...others.map(keyOf)]
  })
}

function signatureOf(value: string, key: KeyObject): string {
  return createHmac('sha256', key).update(value).digest('base64').replace('=', '')
}

/** Compares two signatures in constant time. */
export function isSame(one: string, other: string): boolean {
  const [ones, others] = [Buffer.from(one), Buffer.from(other)]
  return ones.length === others.length && timingSafeEqual(ones, others)
}
