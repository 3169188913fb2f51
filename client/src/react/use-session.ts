import { useSyncExternalStore } from 'react'
import type { Client } from '../core/create-client.ts'
import { sessionKey, type SessionState } from '../core/session/session-state.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const never = (): (() => void) => () => undefined
const none = (): undefined => undefined

/**
 * The session of the user. The component renders again after every change.
 * ```tsx
 * const session = useSession(client)
 * return session.status === 'active' ? <Account /> : <a href={client.session.loginUrl()}>Log in</a>
 * ```
 */
export function useSession({ session }: Pick<Client, 'session'>): SessionState {
  return useSyncExternalStore(session.subscribe, session.get, () => UNKNOWN)
}

/**
 * The key of the session. What was loaded under another key must not be shown, so the component renders again only when the key
 * changes.
 * @param isNeeded false for what concerns no user: then the session is not followed, and there is no key
 */
export function useSessionKey({ session }: Pick<Client, 'session'>, isNeeded: boolean): string | undefined {
  const get = (): string | undefined => sessionKey(session.get())
  return useSyncExternalStore(isNeeded ? session.subscribe : never, isNeeded ? get : none, none)
}
