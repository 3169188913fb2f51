import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Changing } from '../config/changing.ts'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookieValues } from '../http/cookies.ts'
import { createSigner, type CookieSigner } from '../sessions/index.ts'
import { readAttribution, type Attribution } from './attribution.ts'
import { storeNow } from '../time/store-time.ts'

/**
 * The cookie that remembers the last complete partner link. If a sign-up is cancelled and tried again without the link,
 * it keeps its partner. The cookie is signed and not readable by pages.
 */
export class AttributionCookie {
  readonly name: string
  readonly #signer: CookieSigner
  readonly #secure: boolean
  readonly #ttlMs: number

  constructor(cookies: Config['cookies'], secrets: Changing<readonly string[]>, ttlMs: number) {
    this.name = `${cookies.prefix}attribution`
    this.#signer = createSigner(secrets, 'attribution cookie')
    this.#secure = cookies.secure
    this.#ttlMs = ttlMs
  }

  /** False if links are not remembered (ATTRIBUTION_TTL_SECONDS=0). */
  get enabled(): boolean {
    return this.#ttlMs > 0
  }

  /** The value of the cookie. The expiry is signed too, so that a browser cannot extend it. */
  value(attribution: Attribution): string {
    const text = JSON.stringify({ ...attribution, until: storeNow() + this.#ttlMs })
    return this.#signer.sign(Buffer.from(text).toString('base64url'))
  }

  /** The remembered link, if the request's cookie is signed, complete and not expired. */
  read(header: string | undefined): Attribution | undefined {
    const [value, ...more] = header === undefined ? [] : cookieValues(header, this.name)
    if (!this.enabled || value === undefined || more.length > 0) return undefined
    const { valid, value: text } = this.#signer.unsign(value)
    if (!valid || text === null) return undefined
    const { until, ...link } = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, string>
    const { values, outcome } = readAttribution(new URLSearchParams(link).toString())
    return Number(until) > storeNow() && outcome === 'complete' ? values : undefined
  }

  /** Attributes of the cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs = this.#ttlMs): CookieSerializeOptions {
    return cookieAttributes('lax', this.#secure, lifetimeMs)
  }
}
