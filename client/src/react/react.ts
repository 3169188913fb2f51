import { useEffect, useState, useSyncExternalStore } from 'react'
import type { Client } from '../core/create-client.ts'
import type { SocketError } from '../core/base/errors.ts'
import type { Message, SocketStatus } from '../core/sockets/socket-status.ts'
import type { SeriesOptions, SeriesPoints, SeriesState } from '../core/sockets/series-shape.ts'
import type { SessionState } from '../core/session/session-state.ts'
import type { PublicSocket } from '../core/sockets/socket.ts'
import type { AnswerTo, Described, StreamOperation, Undescribed } from '../core/sockets/typed-messages.ts'

const UNKNOWN: SessionState = { status: 'unknown' }
const NONE = { status: { state: 'waiting' } } as const
const EMPTY = { points: [] } as const

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
    return keepOpen(client, account, (socket) => {
      show({ status: socket.status(), error: undefined })
      socket.onStatus(() => show({ status: socket.status() }))
      socket.subscribe<Message>(
        JSON.parse(key) as Undescribed<Message>,
        (data) => show({ data, error: undefined }),
        (error) => show({ error }),
      )
    })
  }, [client, of])
  // After a change of the message, the data of the previous stream must not be shown.
  return found.of === of ? found : NONE
}

/**
 * The newest prices or candles of a symbol, while the component is mounted.
 * ```tsx
 * const { points } = useSeries(client, { symbol: 'R_100', style: 'candles', granularity: 60 })
 * ```
 * @param options what to show; undefined for nothing
 * @param account the account whose trading socket carries the stream; undefined for the public socket
 */
export function useSeries<S extends keyof SeriesPoints>(
  client: Client,
  options: SeriesOptions<S> | undefined,
  account?: string,
): SeriesState<SeriesPoints[S]> {
  type State = SeriesState<SeriesPoints[S]>
  const key = options && JSON.stringify(options)
  const [found, set] = useState<{ readonly of?: unknown; readonly state: State }>({ state: EMPTY })
  const of = `${account ?? ''} ${key ?? ''}`
  useEffect(() => {
    if (key === undefined) return undefined
    return keepOpen(client, account, (socket) => {
      const series = socket.series(JSON.parse(key) as SeriesOptions<S>)
      series.subscribe(() => set({ of, state: series.get() }))
    })
  }, [client, of])
  return found.of === of ? found.state : EMPTY
}

/**
 * Opens a socket and uses it. After a logout has ended a trading socket, another one is opened once a user has logged in again.
 * @returns a function that closes it
 */
function keepOpen(client: Client, account: string | undefined, use: (socket: PublicSocket) => void): () => void {
  const open = (): PublicSocket => {
    const socket = account === undefined ? client.publicSocket() : client.tradingSocket(account)
    use(socket)
    return socket
  }
  let socket = open()
  const { session } = client
  const again = (): void => {
    const { state, code } = socket.status()
    if (state !== 'ended' || code !== 4401 || session.get().status !== 'active') return
    socket.close()
    socket = open()
  }
  const stop = account === undefined ? undefined : session.subscribe(again)
  return () => {
    stop?.()
    socket.close()
  }
}
