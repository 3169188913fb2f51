import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { parseClientKeys, publicJwk } from '../../../src/config/client-key.ts'

/** A new private key in both notations, and what is registered of it. */
export interface ClientKeyPair {
  readonly pem: string
  readonly privateJwk: JsonWebKey
  readonly publicJwk: JsonWebKey
}

/** Makes a key on a curve, of the curve Ed25519, or of RSA with so many bits. */
export function newClientKey(kind: 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | number): ClientKeyPair {
  const { privateKey } = pairOf(kind)
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const [key] = parseClientKeys(pem) ?? []
  if (key === undefined) throw new Error(`${kind} is no client key`)
  return { pem, privateJwk: privateKey.export({ format: 'jwk' }), publicJwk: publicJwk(key) }
}

function pairOf(kind: 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | number): { privateKey: KeyObject } {
  if (typeof kind === 'number') return generateKeyPairSync('rsa', { modulusLength: kind })
  return kind === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: kind })
}
