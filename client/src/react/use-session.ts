import { useEffect, useLayoutEffect, useState, useSyncExternalStore } from 'react'
import type { Client } from '../core/create-client.ts'
import { sessionKey, type SessionState } from '../core/session/session-state.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const never = (): (() => void) => () => undefined
const none = (): undefined => undefined
/** A server has no layout, and React 18 would say so. */
const useBeforePaint = 'document' in globalThis ? useLayoutEffect : useEffect

/** A store, looked at again before it is painted: an Activity that is shown again shows what it did before it was hidden. */
function useStore<T>(subscribe: (listener: () => void) => () => void, get: () => T, getOnServer: () => T): T {
  const value = useSyncExternalStore(subscribe, get, getOnServer)
  const [, renderAgain] = useState({})
  useBeforePaint(() => {
    if (get() !== value) renderAgain({})
  })
  return value
}

/**
 * The session of the user. The component renders again after every change.
 * ```tsx
 * const session = useSession(client)
 * return session.status === 'active' ? <Account /> : <a href={client.session.loginUrl()}>Log in</a>
 * ```
 */
export function useSession({ session }: Pick<Client, 'session'>): SessionState {
  return useStore(session.subscribe, session.get, () => UNKNOWN)
}

/**
 * The key of the session. What was loaded under another key must not be shown, so the component renders again only when the key
 * changes.
 * @param isNeeded false for what concerns no user: then the session is not followed, and there is no key
 */
export function useSessionKey({ session }: Pick<Client, 'session'>, isNeeded: boolean): string | undefined {
  const get = (): string | undefined => sessionKey(session.get())
  return useStore(isNeeded ? session.subscribe : never, isNeeded ? get : none, none)
}
