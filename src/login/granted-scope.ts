import type { FastifyBaseLogger } from 'fastify'
import type { TokenGrant } from '../oauth/grant-outcome.ts'
import { BoundedLines } from '../telemetry/bounded-lines.ts'

/** Every login may be granted the same. One line an hour stands for all. */
const lines = new BoundedLines({ atOnce: 1, everyMs: 3_600_000 })
const MESSAGE = 'the provider granted less than OAUTH_SCOPE, so some calls may be refused'

/** Warns if a login was granted less than it asked for (RFC 6749 §3.3). @param asked OAUTH_SCOPE */
export function warnOfNarrowScope(log: FastifyBaseLogger, asked: string, { scope, refreshToken }: TokenGrant): void {
  // Without a scope, the granted one is the requested one.
  const granted = scope?.split(' ')
  const missing = asked.split(' ').filter((each) => granted?.includes(each) === false)
  // Some providers do not list it, and yet grant what it stands for.
  const lost = refreshToken === undefined ? missing : missing.filter((each) => each !== 'offline_access')
  if (lost.length === 0) return
  lines.add(log, { id: lost.join(' '), write: (count) => log.warn({ missing: lost, count }, MESSAGE) })
}
