import { useEffect, useState, useSyncExternalStore } from 'react'
import type { Client } from './create-client.ts'
import type { SocketError } from './errors.ts'
import type { Message, SocketStatus } from './socket-status.ts'
import type { SessionState } from './session-state.ts'
import type { PublicSocket } from './socket.ts'
import type { AnswerTo, Described, StreamOperation, Undescribed } from './typed-messages.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const NONE = { status: { state: 'waiting' } } as const

/** The state of a stream. */
export interface Subscription<T> {
  /** The latest message; undefined before the first one. */
  readonly data?: T
  /** The refusal of the trading service, until a message arrives after it, or why the connection ended. */
  readonly error?: SocketError | undefined
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
 * const { data, error, status } = useSubscription(client, { ticks: 'R_100' })
 * ```
 * @param message the subscription; undefined to subscribe to nothing
 * @param account the account whose trading socket carries the stream; undefined for the public socket
 */
export function useSubscription<const M extends object>(
  client: Client,
  message: (M & Described<M, StreamOperation>) | undefined,
  account?: string,
): Subscription<AnswerTo<M>>
/** The same for an operation that the package does not know: give the type of the messages by hand. */
export function useSubscription<T = never>(
  client: Client,
  message: Undescribed<T> | undefined,
  account?: string,
): Subscription<NoInfer<T>>
export function useSubscription(client: Client, message: object | undefined, account?: string): Subscription<Message> {
  const key = message && JSON.stringify(message)
  const [found, set] = useState<Subscription<Message> & { readonly of?: unknown }>(NONE)
  const of = `${account ?? ''} ${key ?? ''}`
  useEffect(() => {
    if (key === undefined) return undefined
    let now: Subscription<Message> & { of: unknown } = { ...NONE, of }
    const show = (more: Partial<Subscription<Message>>): void => set((now = { ...now, ...more }))
    const open = (): PublicSocket => {
      const socket = account === undefined ? client.publicSocket() : client.tradingSocket(account)
      show({ status: socket.status(), error: undefined })
      socket.onStatus(() => show({ status: socket.status() }))
      socket.subscribe<Message>(
        JSON.parse(key) as Undescribed<Message>,
        (data) => show({ data, error: undefined }),
        (error) => show({ error }),
      )
      return socket
    }
    let socket = open()
    const { session } = client
    const stop =
      account === undefined
        ? undefined
        : session.subscribe(() => {
            // The logout has ended the socket, and the user has logged in again.
            const { state, code } = socket.status()
            if (state !== 'ended' || code !== 4401 || session.get().status !== 'active') return
            socket.close()
            socket = open()
          })
    return () => {
      stop?.()
      socket.close()
    }
  }, [client, of])
  // After a change of the message, the data of the previous stream must not be shown.
  return found.of === of ? found : NONE
}
