import type { FastifyBaseLogger } from 'fastify'
import type { Provider } from '../oauth/provider.ts'
import { audit } from '../telemetry/audit.ts'
import type { SessionRecord } from './session-record.ts'

/** Revokes the tokens of a session in the background. @param tag of the session, for the log */
export function revokeTokens(
  { provider, log }: { readonly provider: Provider; readonly log: FastifyBaseLogger },
  record: Pick<SessionRecord, 'accessToken' | 'refreshToken'>,
  tag?: string,
): void {
  void provider.revoke(record).then((failures) => {
    for (const { token, status, cause } of failures) {
      audit(log, 'revocation_failed', { session: tag, token, status, cause })
    }
  })
}
