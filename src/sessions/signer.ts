import { hkdfSync } from 'node:crypto'
import { Signer } from '@fastify/cookie'

/**
 * Signs cookie values (HMAC-SHA256). Each purpose has keys of its own, so that a value signed for one cookie is
 * worthless in another.
 * @param secrets the first signs, all verify
 */
export function createSigner(secrets: readonly string[], purpose: string): Signer {
  return new Signer(secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))))
}
