import type { SessionRecord } from './session-record.ts'
import type { TokenGrant } from '../oauth/grant-outcome.ts'

const MAX_MARGIN_MS = 60_000

/** When to renew a token: a little before it expires (epoch ms). */
export function renewAt(record: SessionRecord): number {
  return record.tokenExpiresAt - Math.min(MAX_MARGIN_MS, record.tokenLifetimeMs / 10)
}

/** The record of a session, new or refreshed, with the tokens of a grant. */
export function recordOf(
  grant: TokenGrant,
  session: Pick<SessionRecord, 'endsAt' | 'loginKey' | 'scope' | 'subject'>,
): SessionRecord {
  const { accessToken, expiresAt, refreshToken, scope = session.scope } = grant
  return {
    accessToken,
    tokenExpiresAt: expiresAt,
    tokenLifetimeMs: expiresAt - Date.now(),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    scope,
    // Without a refresh token, the session cannot outlive the access token.
    endsAt: refreshToken === undefined ? Math.min(session.endsAt, expiresAt) : session.endsAt,
    loginKey: session.loginKey,
    ...(session.subject === undefined ? {} : { subject: session.subject }),
  }
}
