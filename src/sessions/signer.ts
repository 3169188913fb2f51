import { hkdfSync } from 'node:crypto'
import { Signer } from '@fastify/cookie'

/**
 * Creates a signer of cookie values (HMAC-SHA256). Each purpose has its own keys, so that a value signed for one cookie is
 * not valid in another.
 * @param secrets the first one signs, all of them verify
 */
export function createSigner(secrets: readonly string[], purpose: string): Signer {
  return new Signer(secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))))
}
