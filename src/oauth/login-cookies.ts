import { createHmac, randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Config } from '../config.ts'

const MAX_PER_BROWSER = 10
/** Cookies beyond this are not looked at: nobody but an attacker has them. */
const MAX_LOOKED_AT = 3 * MAX_PER_BROWSER
const SECRET_BYTES = 24
const SECRET = /^[\w-]{32}$/

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
}

/** One cookie for each started login: `__Host-login-<8 characters of the state>`. */
export class LoginCookies {
  readonly #prefix: string
  readonly #secure: boolean

  constructor(cookies: Config['cookies']) {
    this.#prefix = `${cookies.prefix}login-`
    this.#secure = cookies.secure
  }

  /** A cookie for a new transaction. */
  create(): LoginCookie {
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const state = stateOf(secret)
    const startedAt = Date.now()
    const name = `${this.#prefix}${state.slice(0, 8)}`
    return { name, value: `${secret}.${startedAt.toString(36)}`, secret, state, startedAt }
  }

  /** Those of a Cookie header, the oldest first. What cannot be read is passed over. */
  read(header: string | undefined): LoginCookie[] {
    const cookies: LoginCookie[] = []
    for (const pair of header?.split(';') ?? []) {
      const [name = '', value = ''] = pair.trim().split('=', 2)
      if (!name.startsWith(this.#prefix) || cookies.length >= MAX_LOOKED_AT) continue
      const [secret = '', startedAt = ''] = value.split('.')
      if (!SECRET.test(secret)) continue
      const state = stateOf(secret)
      cookies.push({ name, value, secret, state, startedAt: Number.parseInt(startedAt, 36) || 0 })
    }
    return cookies.sort((one, other) => one.startedAt - other.startedAt)
  }

  /** Attributes of one; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number): CookieSerializeOptions {
    return {
      path: '/',
      httpOnly: true,
      secure: this.#secure,
      sameSite: 'lax',
      maxAge: Math.ceil(lifetimeMs / 1000),
      encode: String,
    }
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
