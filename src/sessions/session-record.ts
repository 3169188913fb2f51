import type { TokenGrant } from '../oauth/grant-outcome.ts'

/** A token is renewed this long before it expires at most. */
const MAX_MARGIN_MS = 60_000

/** The stored content of a session. It never leaves the server. Times are epoch ms. */
export interface SessionRecord {
  readonly accessToken: string
  readonly tokenExpiresAt: number
  readonly tokenLifetimeMs: number
  readonly refreshToken?: string
  readonly scope: string
  /** The absolute limit of the session. */
  readonly endsAt: number
  /** Store key of the login transaction that created the session; a logout removes it too. */
  readonly loginKey: string
  /** Whose session it is, as IDENTITY_POINTER found it; absent where that is not known. */
  readonly subject?: string
}

const SHAPE = {
  accessToken: 'string',
  tokenExpiresAt: 'number',
  tokenLifetimeMs: 'number',
  scope: 'string',
  endsAt: 'number',
  loginKey: 'string',
} as const satisfies Partial<Record<keyof SessionRecord, 'string' | 'number'>>

/** The record in a stored text. Undefined if another version of the server wrote it. */
export function parseRecord(text: string): SessionRecord | undefined {
  try {
    const record = JSON.parse(text) as Record<string, unknown> | null
    const fits = Object.entries(SHAPE).every(([name, type]) => typeof record?.[name] === type)
    return fits ? (record as unknown as SessionRecord) : undefined
  } catch {
    return undefined
  }
}

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
    ...(refreshToken !== undefined && { refreshToken }),
    scope,
    // Without a refresh token, the session cannot outlive the access token.
    endsAt: refreshToken === undefined ? Math.min(session.endsAt, expiresAt) : session.endsAt,
    loginKey: session.loginKey,
    ...(session.subject !== undefined && { subject: session.subject }),
  }
}
