import { useEffect, useState } from 'react'
import type { Client } from '../core/create-client.ts'
import type { SocketError } from '../core/base/errors.ts'
import type { Message, SocketStatus } from '../core/sockets/socket-status.ts'
import type { SeriesOptions, SeriesPoints, SeriesState } from '../core/sockets/series-shape.ts'
import type { PublicSocket, TradingSocket } from '../core/sockets/socket.ts'
import type { AnswerTo, Checked, StreamOperation, Undescribed } from '../core/sockets/typed-messages.ts'
import { useSessionKey } from './use-session.ts'

const NONE = { status: { state: 'waiting' } } as const
const EMPTY = { points: [] } as const

/** A socket that is open as long as its component. */
export interface OpenSocket<S> {
  /** Undefined until the component has been mounted, and for a trading socket until a user is logged in. */
  readonly socket?: S
  /** The state of the connection; `waiting` while there is no socket. */
  readonly status: SocketStatus
}

/** The state of a stream. */
export interface Subscription<T> {
  /** The latest message; undefined before the first one. */
  readonly data?: T
  /** The refusal of the trading service, until a message arrives after it, or why the connection ended. */
  readonly error?: SocketError | undefined
  /** The state of the connection; `waiting` while there is none. */
  readonly status: SocketStatus
}

/**
 * Opens a socket with the component, and closes it with the component.
 * ```tsx
 * const { socket, status } = useSocket(client, accountId)
 * return <button disabled={status.state !== 'open'} onClick={() => socket?.command(order)}>Buy</button>
 * ```
 * A trading socket is opened once a user is logged in. In another session it is another socket.
 * @param account the account to trade on; null for none yet, so that no socket is opened; undefined for the public socket
 */
export function useSocket(client: Client): OpenSocket<PublicSocket>
export function useSocket(client: Client, account: string | null): OpenSocket<TradingSocket>
export function useSocket(client: Client, account: string | null | undefined): OpenSocket<PublicSocket>
export function useSocket(client: Client, account?: string | null): OpenSocket<PublicSocket> {
  return useWhileOpen<OpenSocket<PublicSocket>>(client, account, '', NONE, (socket, show) => {
    const changed = (): void => show({ socket, status: socket.status() })
    socket.onStatus(changed)
    changed()
  })
}

/** Follows a stream of an operation that the package does not know: give the type of the messages by hand. */
export function useSubscription<T = never>(
  client: Client,
  message: Undescribed<T> | undefined,
  account?: string | null,
): Subscription<NoInfer<T>>
/**
 * Follows a stream while the component is mounted. Equal streams of a client share one subscription.
 * ```tsx
 * const { data, error, status } = useSubscription(client, { ticks: 'R_100' })
 * ```
 * @param message the subscription; undefined to subscribe to nothing
 * @param account the account whose trading socket carries the stream, once a user is logged in; null for none yet; undefined for the
 * public socket
 */
export function useSubscription<const M extends object>(
  client: Client,
  message: Checked<M, StreamOperation> | undefined,
  account?: string | null,
): Subscription<AnswerTo<M>>
export function useSubscription(
  client: Client,
  message: object | undefined,
  account?: string | null,
): Subscription<Message> {
  const text = message && JSON.stringify(message)
  return useWhileOpen<Subscription<Message>>(client, account, text, NONE, (socket, show) => {
    let now: Subscription<Message> = { status: socket.status() }
    const change = (more: Partial<Subscription<Message>>): void => show((now = { ...now, ...more }))
    change({})
    socket.onStatus(() => change({ status: socket.status() }))
    socket.subscribe<Message>(
      message as Undescribed<Message>,
      (data) => change({ data, error: undefined }),
      (error) => change({ error }),
    )
  })
}

/**
 * The newest prices or candles of a symbol, while the component is mounted.
 * ```tsx
 * const { points } = useSeries(client, { symbol: 'R_100', style: 'candles', granularity: 60 })
 * ```
 * @param options what to show; undefined for nothing
 * @param account the account whose trading socket carries the stream, once a user is logged in; null for none yet; undefined for the
 * public socket
 */
export function useSeries<S extends keyof SeriesPoints>(
  client: Client,
  options: SeriesOptions<S> | undefined,
  account?: string | null,
): SeriesState<SeriesPoints[S]> {
  type State = SeriesState<SeriesPoints[S]>
  const text = options && JSON.stringify(options)
  return useWhileOpen<State>(client, account, text, EMPTY, (socket, show) => {
    const series = socket.series(options as SeriesOptions<S>)
    series.subscribe(() => show(series.get()))
  })
}

/**
 * Opens a socket while the component is mounted, for what `use` does with it, and another one after any change. A trading socket
 * belongs to one session.
 * @param account null to open nothing
 * @param what changes when `use` has to do something else; undefined to open nothing
 * @param none what to return until `use` has shown something. Nothing that was shown before a change is returned after it
 */
function useWhileOpen<T>(
  client: Client,
  account: string | null | undefined,
  what: string | undefined,
  none: T,
  use: (socket: TradingSocket, show: (value: T) => void) => void,
): T {
  const session = useSessionKey(client, typeof account === 'string')
  const isReady = what !== undefined && account !== null && (account === undefined || session !== undefined)
  const of = isReady ? `${account} ${session} ${what}` : undefined
  const [found, set] = useState<{ client?: Client; of?: string | undefined; value: T }>({ value: none })
  useEffect(() => {
    if (!isReady) return void set((before) => (before.of === undefined ? before : { value: none }))
    const socket = account === undefined ? (client.publicSocket() as TradingSocket) : client.tradingSocket(account)
    let isOpen = true
    const close = (): void => {
      // What it shows of its end concerns no component any more.
      isOpen = false
      socket.close()
    }
    try {
      use(socket, (value) => isOpen && set({ client, of, value }))
    } catch (error) {
      close()
      throw error
    }
    return close
  }, [client, of])
  return found.client === client && found.of === of ? found.value : none
}
