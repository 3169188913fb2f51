import type { CookieSerializeOptions, Signer } from '@fastify/cookie'
import type { Config } from '../config.ts'
import { cookieValues } from '../session/session-cookie.ts'
import { createSigner } from '../store/signer.ts'

/** The partner's parameters of a sign-up (interface 2.1) and what each must be. */
const RULES = {
  sidc: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  utm_campaign: /^[\x20-\x7e]{1,128}$/,
  utm_medium: /^affiliate$/,
  utm_source: /^[\x20-\x7e]{1,128}$/,
} as const

const NAMES = Object.keys(RULES) as readonly AttributionName[]

/** One of the four parameters. */
type AttributionName = keyof typeof RULES

/** The valid values of a link. */
export type Attribution = Partial<Record<AttributionName, string>>

/** What a sign-up link carries. */
export interface AttributionReading {
  readonly values: Attribution
  /** `complete`: all four are there and valid; `none`: not one is there. */
  readonly outcome: 'complete' | 'partial' | 'none'
  /** Why each of the others does not count: `sidc=format,utm_medium=missing`. Empty unless partial. */
  readonly problems: string
}

/** Reads the four parameters of a query; a bad or repeated one is dropped and named. */
export function readAttribution(query: URLSearchParams): AttributionReading {
  const values: Attribution = {}
  const problems: string[] = []
  let present = 0
  for (const name of NAMES) {
    const [value, ...more] = query.getAll(name)
    if (value !== undefined) present++
    if (value === undefined) problems.push(`${name}=missing`)
    else if (more.length > 0) problems.push(`${name}=repeated`)
    else if (!RULES[name].test(value)) problems.push(`${name}=format`)
    else values[name] = value
  }
  if (present === 0) return { values, outcome: 'none', problems: '' }
  return { values, outcome: problems.length === 0 ? 'complete' : 'partial', problems: problems.join(',') }
}

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
    const { values, outcome } = readAttribution(new URLSearchParams(link))
    return Number(until) > Date.now() && outcome === 'complete' ? values : undefined
  }

  /** Attributes to set it, or to delete it. */
  attributes(deleting = false): CookieSerializeOptions {
    return {
      path: '/',
      httpOnly: true,
      secure: this.#secure,
      sameSite: 'lax',
      maxAge: deleting ? 0 : Math.ceil(this.#ttlMs / 1000),
      encode: String,
    }
  }
}
