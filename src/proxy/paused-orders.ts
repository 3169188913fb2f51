import type { Controls } from '../controls/controls.ts'
import { Problem } from '../problem.ts'
import type { Session } from '../sessions/index.ts'

/**
 * Returns at once unless orders are paused for the user of this session, or may be.
 * @throws Problem orders_paused, session_store_unavailable
 */
export async function requireUnpaused(controls: Controls, session: Session): Promise<void> {
  let verdict = controls.verdictOn(session)
  while (verdict?.is === 'unidentified') {
    await controls.identify(session)
    verdict = controls.verdictOn(session)
  }
  if (verdict === undefined) return
  if (verdict.is === 'unread') throw new Problem('session_store_unavailable', { retryAfterSeconds: 1 })
  controls.metrics.refusals.inc({ by: 'call' })
  throw new Problem('orders_paused', { detail: verdict.message, retryAfterSeconds: controls.secondsUntil(verdict) })
}
