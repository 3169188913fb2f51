import type { ActiveSession, SessionState } from './session-state.ts'

/**
 * Tells one session from another, also two of the same user. Put it into the keys of what you keep of a user, such as those of
 * a cache.
 * @returns undefined while no user is logged in, or that is not known yet
 */
export function sessionKey(state: SessionState & { readonly last?: ActiveSession | undefined }): string | undefined {
  return (state.last ?? (state as Partial<ActiveSession>)).session
}
