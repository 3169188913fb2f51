import { createHmac, randomBytes, type KeyObject } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Changing } from '../config/changing.ts'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookiesNamed } from '../http/cookies.ts'
import { isSame, signingKeys } from '../sessions/index.ts'
import { storeNow } from '../time/store-time.ts'

/** Login cookies that a start leaves in a browser at most. */
export const MAX_PER_BROWSER = 10
/** Beyond so many, the oldest are ignored, which browsers send first (RFC 6265 §5.4). */
const MAX_READ = 3 * MAX_PER_BROWSER
const SECRET_BYTES = 24
const SECRET = /^[\w-]{32}$/
/** Characters of base64url: 132 bits. */
const MAC_LENGTH = 22
/** The end of the value once its login has finished. A browser may make it up. */
const FINISHED = '.f'

/** The cookie of one login transaction, and the OAuth state that belongs to it. */
export interface LoginCookie {
  readonly name: string
  readonly value: string
  readonly secret: string
  /**
   * An HMAC under the secret: it cannot be guessed, it follows from the cookie alone, and it does not reveal the secret to
   * the provider.
   */
  readonly state: string
  /** Epoch ms. */
  readonly startedAt: number
}

/**
 * One cookie per started login: `__Host-login-<8 characters of the state>=<secret>.<start>.<MAC>`. Without the MAC,
 * made-up cookies would cause lookups in the store. That of a finished login ends with `.f`.
 */
export class LoginCookies {
  readonly #prefix: string
  readonly #secure: boolean
  readonly #macKeys: ReturnType<typeof signingKeys>

  /** @param secrets the first one signs, all of them verify */
  constructor(cookies: Config['cookies'], secrets: Changing<readonly string[]>) {
    this.#prefix = `${cookies.prefix}login-`
    this.#secure = cookies.secure
    this.#macKeys = signingKeys(secrets, 'login cookie')
  }

  /** Creates a cookie for a new transaction. */
  create(): LoginCookie {
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const state = stateOf(secret)
    const startedAt = storeNow()
    const signed = `${secret}.${startedAt.toString(36)}`
    const value = `${signed}.${macOf(signed, this.#macKeys()[0])}`
    return { name: this.#nameOf(state), value, secret, state, startedAt }
  }

  /** The login cookies of a Cookie header, oldest first. Malformed ones and those without a valid MAC are ignored. */
  read(header = ''): LoginCookie[] {
    const cookies: LoginCookie[] = []
    for (const { name, value } of finishedLast(cookiesNamed(header, this.#prefix)).slice(-MAX_READ)) {
      const [secret = '', start = '', mac = ''] = value.split('.')
      if (!SECRET.test(secret) || !this.#isMac(`${secret}.${start}`, mac)) continue
      const state = stateOf(secret)
      if (name !== this.#nameOf(state)) continue
      cookies.push({ name, value, secret, state, startedAt: Number.parseInt(start, 36) })
    }
    return cookies.sort((one, other) => one.startedAt - other.startedAt)
  }

  /** Attributes of a login cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number): CookieSerializeOptions {
    return cookieAttributes('lax', this.#secure, lifetimeMs)
  }

  #nameOf(state: string): string {
    return this.#prefix + state.slice(0, 8)
  }

  #isMac(signed: string, mac: string): boolean {
    return mac.length === MAC_LENGTH && this.#macKeys().some((key) => isSame(mac, macOf(signed, key)))
  }
}

/** The value that a cookie gets when its login has finished. */
export function finishedValue(value: string): string {
  return value.endsWith(FINISHED) ? value : value + FINISHED
}

/** Puts the cookies of finished logins behind the others, and leaves their order as it is otherwise. */
export function finishedLast<Cookie extends Pick<LoginCookie, 'value'>>(cookies: readonly Cookie[]): Cookie[] {
  return cookies.toSorted((one, other) => Number(one.value.endsWith(FINISHED)) - Number(other.value.endsWith(FINISHED)))
}

function stateOf(secret: string): string {
  return createHmac('sha256', secret).update('state').digest('base64url')
}

function macOf(text: string, key: KeyObject): string {
  return createHmac('sha256', key).update(text).digest('base64url').slice(0, MAC_LENGTH)
}
