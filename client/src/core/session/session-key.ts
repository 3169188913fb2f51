import type { ActiveSession, SessionState } from './session-state.ts'

/**
 * Tells one session from another, also two of the same user. Put it into the keys of what you keep of a user, such as those of
 * a cache.
 * @returns undefined while no user is logged in, or that is not known yet
 */
export function sessionKey(state: SessionState): string | undefined {
  const active = state.status === 'unavailable' ? state.last : state
  if (active?.status !== 'active') return undefined
  const { subject, expiresAt, session = expiresAt } = active as ActiveSession & { readonly session?: string }
  return `${subject} ${session}`
}
