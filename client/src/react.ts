import { useEffect, useState, useSyncExternalStore } from 'react'
import type { Client } from './create-client.ts'
import type { SocketError } from './errors.ts'
import type { Message, SocketStatus } from './socket-status.ts'
import type { SessionState } from './session-state.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const NONE = { status: { state: 'waiting' } } as const

/** The state of a stream. */
export interface Subscription<T> {
  /** The latest message; undefined before the first one. */
  readonly data?: T
  /** The last refusal of the trading service, or why the connection ended. */
  readonly error?: SocketError
  /** The state of the connection. */
  readonly status: SocketStatus
}

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
 * Follows a stream while the component is mounted. Equal streams of a client share one subscription.
 * ```tsx
 * const { data, error, status } = useSubscription<Tick>(client, { ticks: 'R_100' })
 * ```
 * @param message the subscription; undefined to subscribe to nothing
 * @param account the account whose trading socket carries the stream; undefined for the public socket
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
  // After a change of the message, the data of the previous stream must not be shown.
  return found.of === of ? found : NONE
}
