import { setTimeout as delay } from 'node:timers/promises'
import { StoreUnavailable } from '../store/store.ts'
import type { SessionRepository } from './repository.ts'
import type { Session, SessionRecord } from './session.ts'

/** How long saving a refreshed token is retried: if it were lost, the session would be lost with it. */
export const SAVE_MS = 5000
const POLL_MS = 50

/**
 * Like {@link SessionRepository.replace}, but retries during a short outage: the old refresh token is used up, and `record` is the only
 * copy of the new one. @throws StoreUnavailable
 */
export async function replaceInTime(
  sessions: SessionRepository,
  session: Session,
  record: SessionRecord,
): Promise<Session | undefined> {
  const giveUpAt = performance.now() + SAVE_MS
  for (;;) {
    try {
      return await sessions.replace(session, record)
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() >= giveUpAt) throw error
      await delay(POLL_MS)
    }
  }
}
