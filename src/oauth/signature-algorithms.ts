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
