import {
  compactVerify,
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type JSONWebKeySet,
  type JWK,
  type JWSHeaderParameters,
} from 'jose'
import { standstill } from '../time/standstill.ts'
import { Window } from '../time/window.ts'

/** The signature algorithms of RFC 7518 §3.1 and RFC 9864 with a public key. Never `none`, and never one with a shared secret. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'Ed25519',
  'EdDSA',
]

/** Keys that are older are fetched again before they are used: the provider may have withdrawn one. */
const MAX_AGE_MS = 600_000
/** A key that is not known is looked for this often at most. */
const UNKNOWN_KEY_MS = 60_000
/** After a failed try, no logout causes another for so long: strangers send logouts, and those of one address wait for each other. */
const RETRY_MS = 1000
/** Keys that may have made a signature that does not name its key. A stranger may send many of these. */
const MAX_TRIED = 4

/** The kind of token: an ID token of a login, or a logout token, which a stranger may have made up. */
type Purpose = 'login' | 'logout'

/**
 * Whether the provider has signed a token. `away`: its keys cannot be had at the moment. With `isKeyUnknown` they are there, but
 * not the one for this token, and they were fetched again less than a minute ago.
 */
export type SignatureCheck =
  | { readonly is: 'valid' }
  | { readonly is: 'invalid'; readonly cause: unknown }
  | { readonly is: 'away'; readonly cause: unknown; readonly isKeyUnknown?: true }

/**
 * The public keys of the provider (RFC 7517), with which it signs tokens. One request for them is under way at a time. Logins and
 * logouts cause requests on allowances of their own: false logout tokens must not keep a login from a new key.
 */
export class ProviderKeys {
  readonly #fetch: () => Promise<Record<string, unknown>>
  readonly #unknown = { login: new Window(UNKNOWN_KEY_MS), logout: new Window(UNKNOWN_KEY_MS) }
  #keys = createLocalJWKSet({ keys: [] })
  /** The keys without a name. */
  #nameless = createLocalJWKSet({ keys: [] })
  #names: ReadonlySet<unknown> = new Set()
  /** By the monotonic clock. */
  #fetchedAt = -Infinity
  #fetching: Promise<void> | undefined
  #hasFailed = false
  /** By the monotonic clock. */
  #failedAt = -Infinity

  /** @param fetch gets the JSON object at the address of the keys */
  constructor(fetch: () => Promise<Record<string, unknown>>) {
    this.#fetch = fetch
  }

  /** Checks the signature of a token (RFC 7515 §5.2), and nothing else of it. Never rejects. */
  async check(token: string, purpose: Purpose): Promise<SignatureCheck> {
    let hasJoined = false
    try {
      let hasFetched = false
      if (standstill.now() - this.#fetchedAt > MAX_AGE_MS) {
        hasFetched = this.#fetching === undefined
        if (hasFetched && purpose === 'logout' && performance.now() - this.#failedAt < RETRY_MS) {
          return { is: 'away', cause: new Error('the keys of the provider were asked for a moment ago') }
        }
        await this.#refetch()
      }
      const first = await this.#checkNow(token)
      if (first.is !== 'unknown') return first
      const { cause } = first
      if (this.#fetching === undefined && !this.#unknown[purpose].allows(1)) {
        if (this.#hasFailed) return { is: 'away', cause }
        return purpose === 'logout' ? { is: 'away', cause, isKeyUnknown: true } : { is: 'invalid', cause }
      }
      if (hasFetched) return { is: 'invalid', cause }
      hasJoined = this.#fetching !== undefined
      await this.#refetch()
    } catch (cause) {
      return { is: 'away', cause }
    }
    const second = await this.#checkNow(token)
    if (second.is !== 'unknown') return second
    // A request that another token began may have come before the provider published the key.
    return hasJoined ? { is: 'away', cause: second.cause, isKeyUnknown: true } : { is: 'invalid', cause: second.cause }
  }

  #refetch(): Promise<void> {
    this.#fetching ??= this.#load().finally(() => {
      this.#fetching = undefined
      if (this.#hasFailed) this.#failedAt = performance.now()
    })
    return this.#fetching
  }

  async #load(): Promise<void> {
    this.#hasFailed = true
    const set = (await this.#fetch()) as unknown as JSONWebKeySet
    // createLocalJWKSet() rejects a document that is no set of keys.
    createLocalJWKSet(set)
    const keys = set.keys.map(withoutEdwardsName).map(withoutEmptyName)
    const nameless = keys.filter(({ kid }) => kid === undefined)
    this.#keys = createLocalJWKSet({ keys })
    this.#nameless = createLocalJWKSet({ keys: nameless })
    this.#names = new Set(keys.map(({ kid }) => kid))
    this.#hasFailed = false
    this.#fetchedAt = standstill.now()
  }

  async #checkNow(token: string): Promise<SignatureCheck | { readonly is: 'unknown'; readonly cause: unknown }> {
    let isNamed = false
    const find = (header: JWSHeaderParameters): Promise<CryptoKey> => {
      const { kid, ...unnamed } = header
      isNamed = kid !== undefined && this.#names.has(kid)
      // The name in a token is a hint (RFC 7515 §4.1.4). If no key has it, it may be that of one without.
      return isNamed || kid === undefined ? this.#keys(header) : this.#nameless(unnamed)
    }
    try {
      await compactVerify(token, find, { algorithms: SIGNATURE_ALGORITHMS })
      return { is: 'valid' }
    } catch (cause) {
      if (cause instanceof errors.JWKSNoMatchingKey) return { is: 'unknown', cause }
      if (cause instanceof errors.JWKSMultipleMatchingKeys) return checkEach(token, cause)
      // A key without a name does not tell that it is not the one of the token.
      const isOfOther = !isNamed && this.#names.has(undefined) && cause instanceof errors.JWSSignatureVerificationFailed
      return { is: isOfOther ? 'unknown' : 'invalid', cause }
    }
  }
}

/** EdDSA and Ed25519 name the same algorithm for a key of this curve (RFC 9864 §2.2), and a token may have either. */
function withoutEdwardsName(key: JWK): JWK {
  const { alg, ...unnamed } = key
  return key.crv === 'Ed25519' && (alg === 'EdDSA' || alg === 'Ed25519') ? unnamed : key
}

/** A name that is empty or null is none. */
function withoutEmptyName({ kid, ...key }: JWK): JWK {
  return kid ? { ...key, kid } : key
}

/** Tries one key after the other, since the token does not name its own. */
async function checkEach(token: string, keys: AsyncIterable<CryptoKey>): Promise<SignatureCheck> {
  let cause: unknown
  let tried = 0
  for await (const key of keys) {
    if (tried++ === MAX_TRIED) break
    try {
      await compactVerify(token, key, { algorithms: SIGNATURE_ALGORITHMS })
      return { is: 'valid' }
    } catch (error) {
      cause = error
    }
  }
  return { is: 'invalid', cause }
}
