import type { FastifyBaseLogger } from 'fastify'
import type { Provider } from '../oauth/provider.ts'
import { audit } from '../telemetry/audit/audit.ts'
import type { SessionRepository } from './repository.ts'
import type { SessionRecord } from './session-record.ts'

/** What a record says of its tokens: which they are, and whose. */
export type OwnedTokens = Pick<SessionRecord, 'accessToken' | 'refreshToken' | 'subject'>

interface Dependencies {
  readonly provider: Provider
  readonly sessions: SessionRepository
  readonly log: FastifyBaseLogger
}

/** Revokes the tokens of a session in the background. @param tag of the session, for the log */
export function revokeTokens({ provider, sessions, log }: Dependencies, tokens: OwnedTokens, tag?: string): void {
  const subject = tokens.subject === undefined ? undefined : sessions.subjectTag(tokens.subject)
  void provider.revoke(tokens).then((failures) => {
    for (const { token, status, cause } of failures) {
      audit(log, 'revocation_failed', { session: tag, subject, token, status, cause })
    }
  })
}
