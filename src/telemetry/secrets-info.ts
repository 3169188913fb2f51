import { hkdfSync } from 'node:crypto'
import { Gauge, type Registry } from 'prom-client'

/**
 * Adds a metric that reveals instances with different SESSION_SECRETS, which would log users out. The fingerprint
 * cannot be reversed, and does not depend on the order of the secrets, which differs for a while during a rotation.
 */
export function addSecretsInfo(registry: Registry, secrets: readonly string[]): void {
  const info = new Gauge({
    name: 'bff_session_secrets_info',
    help: 'Always 1; all instances should have the same fingerprint of SESSION_SECRETS',
    labelNames: ['fingerprint'],
    aggregator: 'first',
    registers: [registry],
  })
  const set = secrets.toSorted().join(',')
  const fingerprint = Buffer.from(hkdfSync('sha256', set, '', 'fingerprint', 6)).toString('hex')
  info.set({ fingerprint }, 1)
}
