import { useEffect, useState, useSyncExternalStore } from 'react'
import type { Client } from './create-client.ts'
import type { SocketError } from './errors.ts'
import type { Message, SocketStatus } from './socket-status.ts'
import type { SessionState } from './session-state.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const NONE = { status: { state: 'waiting' } } as const

/** What a stream has brought so far. */
export interface Subscription<T> {
  /** The newest message; undefined before the first. */
  readonly data?: T
  /** Why there will be no more. */
  readonly error?: SocketError
  readonly status: SocketStatus
}

/** The user's session. */
export function useSession({ session }: Pick<Client, 'session'>): SessionState {
  return useSyncExternalStore(session.subscribe, session.get, () => UNKNOWN)
}

/**
 * Follows a stream as long as the component is mounted. Equal streams of a page share one.
 * @param message what to subscribe to; undefined for nothing
 * @param account for a stream of the trading socket; without it, of the public one
 */
export function useSubscription<T = Message>(
  client: Client,
  message: Message | undefined,
  account?: string,
): Subscription<T> {
  const key = message && JSON.stringify(message)
  const [found, set] = useState<Subscription<T> & { readonly of?: unknown }>(NONE)
  const of = `${account ?? ''} ${key ?? ''}`
  useEffect(() => {
    if (key === undefined) return undefined
    const socket = account === undefined ? client.publicSocket() : client.tradingSocket(account)
    let now: Subscription<T> & { of: unknown } = { status: socket.status(), of }
    const show = (more: Partial<Subscription<T>>): void => set((now = { ...now, ...more }))
    show({})
    socket.onStatus(() => show({ status: socket.status() }))
    socket.subscribe<T>(
      JSON.parse(key) as Message,
      (data) => show({ data }),
      (error) => show({ error }),
    )
    return () => socket.close()
  }, [client, of])
  // What another message has brought is not shown for this one.
  return found.of === of ? found : NONE
}
