import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookiesNamed } from '../http/cookies.ts'

const MAX_PER_BROWSER = 10
/** Cookies beyond this are not looked at: nobody but an attacker has them. */
const MAX_LOOKED_AT = 3 * MAX_PER_BROWSER
const SECRET_BYTES = 24
const SECRET = /^[\w-]{32}$/
/** Characters of base64url: 132 bits. */
const MAC_LENGTH = 22

/** The cookie of one login transaction, and the state that belongs to it. */
export interface LoginCookie {
  readonly name: string
  readonly value: string
  readonly secret: string
  /**
   * The HMAC of the secret: as unguessable as the secret itself, and a cookie alone tells which state is its own.
   * Seen by the provider, so it leads back to nothing.
   */
  readonly state: string
  /** Epoch ms. */
  readonly startedAt: number
  /**
   * False: it carries no MAC, as version 0.1 set them, so anybody may have made it up.
   * To be removed, with what asks for it, in the release after this one: such a cookie is then passed over.
   */
  readonly isAuthentic: boolean
}

/**
 * One cookie for each started login: `__Host-login-<8 characters of the state>=<secret>.<start>.<MAC>`. The MAC costs
 * whoever makes cookies up their look into the store.
 */
export class LoginCookies {
  readonly #prefix: string
  readonly #secure: boolean
  readonly #macKeys: readonly Buffer[]

  /** @param secrets the first signs, all verify */
  constructor(cookies: Config['cookies'], secrets: readonly string[]) {
    this.#prefix = `${cookies.prefix}login-`
    this.#secure = cookies.secure
    this.#macKeys = secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'login cookie', 32)))
  }

  /** A cookie for a new transaction. */
  create(): LoginCookie {
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const state = stateOf(secret)
    const startedAt = Date.now()
    const signed = `${secret}.${startedAt.toString(36)}`
    const [key = Buffer.alloc(0)] = this.#macKeys
    const value = `${signed}.${macOf(signed, key)}`
    return { name: this.#nameOf(state), value, secret, state, startedAt, isAuthentic: true }
  }

  /** Those of a Cookie header, the oldest first. What cannot be read, or has a wrong MAC, is passed over. */
  read(header = ''): LoginCookie[] {
    const cookies: LoginCookie[] = []
    for (const { name, value } of cookiesNamed(header, this.#prefix).slice(0, MAX_LOOKED_AT)) {
      const [secret = '', start = '', mac] = value.split('.')
      if (!SECRET.test(secret) || (mac !== undefined && !this.#isMac(`${secret}.${start}`, mac))) continue
      const state = stateOf(secret)
      if (name !== this.#nameOf(state)) continue
      const startedAt = Number.parseInt(start, 36) || 0
      cookies.push({ name, value, secret, state, startedAt, isAuthentic: mac !== undefined })
    }
    return cookies.sort((one, other) => one.startedAt - other.startedAt)
  }

  /** Attributes of one; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number): CookieSerializeOptions {
    return cookieAttributes('lax', this.#secure, lifetimeMs)
  }

  #nameOf(state: string): string {
    return this.#prefix + state.slice(0, 8)
  }

  #isMac(signed: string, mac: string): boolean {
    return mac.length === MAC_LENGTH && this.#macKeys.some((key) => isEqual(mac, macOf(signed, key)))
  }
}

/**
 * Names of the cookies that make room for one more, so that a browser holds ten at most.
 * @param cookies the oldest first; those that are still of use go last
 */
export function surplusOf(cookies: readonly { name: string; inUse: boolean }[]): string[] {
  const room = cookies.length - (MAX_PER_BROWSER - 1)
  const order = [...cookies.filter(({ inUse }) => !inUse), ...cookies.filter(({ inUse }) => inUse)]
  return order.slice(0, Math.max(0, room)).map(({ name }) => name)
}

function stateOf(secret: string): string {
  return createHmac('sha256', secret).update('state').digest('base64url')
}

function macOf(text: string, key: Buffer): string {
  return createHmac('sha256', key).update(text).digest('base64url').slice(0, MAC_LENGTH)
}

/** Compares texts of one length in a time that does not tell how much of them is the same. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'))
}
