import type { CookieSerializeOptions, Signer } from '@fastify/cookie'
import type { Config } from '../config/config.ts'
import { cookieAttributes, cookieValues } from '../http/cookies.ts'
import { createSigner } from '../sessions/index.ts'
import { readAttribution, type Attribution } from './attribution.ts'

/**
 * The cookie that remembers the last complete partner link, so that a sign-up that was cancelled and is tried again
 * without the link keeps its partner. Signed and readable by this server only.
 */
export class AttributionCookie {
  readonly name: string
  readonly #signer: Signer
  readonly #secure: boolean
  readonly #ttlMs: number

  constructor(cookies: Config['cookies'], secrets: readonly string[], ttlMs: number) {
    this.name = `${cookies.prefix}attribution`
    this.#signer = createSigner(secrets, 'attribution cookie')
    this.#secure = cookies.secure
    this.#ttlMs = ttlMs
  }

  /** False when links are not remembered (ATTRIBUTION_TTL_SECONDS=0). */
  get enabled(): boolean {
    return this.#ttlMs > 0
  }

  /** The cookie's value. The moment it was made is signed too: a browser cannot stretch it. */
  value(attribution: Attribution): string {
    const text = JSON.stringify({ ...attribution, until: Date.now() + this.#ttlMs })
    return this.#signer.sign(Buffer.from(text).toString('base64url'))
  }

  /** The remembered link, when the request carries one that is signed, complete and not too old. */
  read(header: string | undefined): Attribution | undefined {
    const [value, ...more] = header === undefined ? [] : cookieValues(header, this.name)
    if (!this.enabled || value === undefined || more.length > 0) return undefined
    const { valid, value: text } = this.#signer.unsign(value)
    if (!valid || text === null) return undefined
    const { until, ...link } = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, string>
    const { values, outcome } = readAttribution(new URLSearchParams(link).toString())
    return Number(until) > Date.now() && outcome === 'complete' ? values : undefined
  }

  /** Attributes to set it, or to delete it. */
  attributes(deleting = false): CookieSerializeOptions {
    return cookieAttributes('lax', this.#secure, deleting ? 0 : this.#ttlMs)
  }
}
