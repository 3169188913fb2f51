import type { Session } from './repository.ts'

const SECOND = 1000

/** The part of a session that its page may know. Times are epoch seconds. */
export type SessionState =
  | { readonly authenticated: false; readonly now: number }
  | ({ readonly authenticated: true; readonly now: number } & SessionLimitsState)

interface SessionLimitsState {
  /** When the session ends whatever the user does. */
  readonly expires_at: number
  /** When it ends unless it is used. Never moves back, and is never further ahead than SESSION_IDLE_SECONDS. */
  readonly idle_expires_at: number
  readonly scope: string
  /** Whose session it is; absent where that is not known. */
  readonly subject?: string
}

/**
 * The state of a session, or of none. The stored idle limit is rounded up to a step, so it may lie a step beyond the setting;
 * a page sees it a step early instead.
 */
export function sessionState(session: Session | undefined, idleMs: number, stepMs: number): SessionState {
  const now = Date.now()
  if (session === undefined) return { authenticated: false, now: Math.floor(now / SECOND) }
  const { idleEndsAt, record } = session
  const isCapped = idleEndsAt >= record.endsAt
  const shownIdleEnd = isCapped ? Math.min(record.endsAt, now + idleMs) : idleEndsAt - stepMs
  return {
    authenticated: true,
    now: Math.floor(now / SECOND),
    expires_at: Math.floor(record.endsAt / SECOND),
    idle_expires_at: Math.floor(shownIdleEnd / SECOND),
    scope: record.scope,
    ...(record.subject !== undefined && { subject: record.subject }),
  }
}
