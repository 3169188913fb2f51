import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'

/** A private key that signs client assertions (RFC 7523 §3). It prints as an object without content. */
export interface ClientKey {
  /** The `kid` of its JWK, or else its thumbprint (RFC 7638). */
  readonly id: string
  /** The signature algorithm (RFC 7518 §3.1, RFC 9864), by the name that the JWK gives it. */
  readonly algorithm: string
  readonly key: KeyObject
}

/** More are refused: the first signs, and a rotation needs one more. */
const MAX_KEYS = 2
const MIN_RSA_BITS = 2048
const PEM_BLOCK = /-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----/g
const RSA_ALGORITHM = /^[RP]S(256|384|512)$/
/** The algorithm for each curve, by OpenSSL's name of the curve. */
const CURVE_ALGORITHMS: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}
/** The members of a public key in the order of its thumbprint (RFC 7638 §3.2, RFC 8037 §2). */
const PUBLIC_MEMBERS: Readonly<Record<string, readonly (keyof JsonWebKey)[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
}

/**
 * Parses CLIENT_KEY: one or two PEM blocks, a JWK, a list of JWKs, or a JWK Set. A `\n` in a PEM may be written as two
 * characters, since an environment file has no line breaks.
 * @returns undefined if the text is anything else, a public or encrypted key, a key that is too weak to sign, or the same
 * key twice
 */
export function parseClientKeys(value: string): readonly ClientKey[] | undefined {
  try {
    const keys = value.includes('-----BEGIN') ? pemKeys(value) : jwkKeys(value)
    const isDistinct = new Set(keys.map(({ id }) => id)).size === keys.length
    return keys.length > 0 && keys.length <= MAX_KEYS && isDistinct ? keys : undefined
  } catch {
    // The error is dropped because it may quote the key.
    return undefined
  }
}

/** Prints keys so that {@link parseClientKeys} reads the same ones again. Contains the private keys. */
export function serializeClientKeys(keys: readonly ClientKey[]): string {
  return JSON.stringify(
    keys.map(({ id, algorithm, key }) => ({ ...key.export({ format: 'jwk' }), kid: id, alg: algorithm })),
  )
}

/** The public half of a key as the provider registers it (RFC 7517). */
export function publicJwk({ id, algorithm, key }: ClientKey): JsonWebKey {
  return { ...createPublicKey(key).export({ format: 'jwk' }), kid: id, alg: algorithm, use: 'sig' }
}

function pemKeys(value: string): ClientKey[] {
  const text = value.replaceAll('\\n', '\n')
  if (text.replaceAll(PEM_BLOCK, '').trim() !== '') throw new Error('something stands between the blocks')
  return (text.match(PEM_BLOCK) ?? []).map((pem) => clientKey(createPrivateKey(pem), {}))
}

function jwkKeys(value: string): ClientKey[] {
  const parsed = JSON.parse(value) as JsonWebKey | JsonWebKey[] | { keys: JsonWebKey[] }
  // Not 'keys' in parsed: a list has a method of that name.
  const set = Object.hasOwn(parsed, 'keys') ? (parsed as { keys: JsonWebKey[] }).keys : parsed
  const jwks = [set].flat() as JsonWebKey[]
  return jwks.map((jwk) => clientKey(createPrivateKey({ key: jwk, format: 'jwk' }), jwk))
}

function clientKey(key: KeyObject, jwk: JsonWebKey): ClientKey {
  const { kid, alg } = jwk
  const algorithm = algorithmOf(key, alg)
  if (alg !== undefined && alg !== algorithm) throw new Error('the algorithm does not fit the key')
  return { id: typeof kid === 'string' && kid !== '' ? kid : thumbprint(key), algorithm, key }
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject, alg: unknown): string {
  // EdDSA is the older name of the same algorithm (RFC 9864 §2.2). A provider with the public half may know no other.
  if (type === 'ed25519') return alg === 'EdDSA' ? alg : 'Ed25519'
  if (type === 'rsa' && (details.modulusLength ?? 0) >= MIN_RSA_BITS) {
    return typeof alg === 'string' && RSA_ALGORITHM.test(alg) ? alg : 'RS256'
  }
  const algorithm = type === 'ec' ? CURVE_ALGORITHMS[details.namedCurve ?? ''] : undefined
  if (algorithm === undefined) throw new Error('not a key that can sign')
  return algorithm
}

function thumbprint(key: KeyObject): string {
  const jwk = createPublicKey(key).export({ format: 'jwk' })
  const members = PUBLIC_MEMBERS[jwk.kty ?? ''] ?? []
  const text = JSON.stringify(Object.fromEntries(members.map((name) => [name, jwk[name]])))
  return createHash('sha256').update(text).digest('base64url')
}
