import { hkdfSync } from 'node:crypto'
import type { Registry } from 'prom-client'
import { Instruments } from './instruments.ts'

/**
 * Adds a metric that reveals instances with different SESSION_SECRETS, which would log users out. The fingerprint
 * cannot be reversed, and does not depend on the order of the secrets, which differs for a while during a rotation.
 */
export function addSecretsInfo(registry: Registry, secrets: readonly string[]): void {
  const set = secrets.toSorted().join(',')
  const fingerprint = Buffer.from(hkdfSync('sha256', set, '', 'fingerprint', 6)).toString('hex')
  const help = 'A fingerprint of the set of SESSION_SECRETS: all instances should have the same'
  new Instruments(registry).info('bff_session_secrets_info', help, { fingerprint })
}
