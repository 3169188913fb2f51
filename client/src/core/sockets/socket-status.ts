import type { CloseCode, CloseReason } from '../generated/catalog.ts'

/** A JSON message to or from the trading service. */
export type Message = Readonly<Record<string, unknown>>

/** The state of a socket's connection. */
export interface SocketStatus {
  /**
   * - `connecting`: the connection is being opened.
   * - `open`: the connection works.
   * - `stale`: the connection may be dead. It either recovers or is opened again within seconds.
   * - `waiting`: the connection is lost and will be opened again, at `retryAt` if that is known.
   * - `ended`: the connection will not be opened again. Open a new socket once the session is `active`.
   */
  readonly state: 'connecting' | 'open' | 'stale' | 'waiting' | 'ended'
  /** How long a ping and its reply have taken lately, in milliseconds. */
  readonly latencyMs?: number
  /** When the next attempt starts, in milliseconds, comparable with `Date.now()`. */
  readonly retryAt?: number
  /** The close code of the last connection. */
  readonly code?: CloseCode | (number & {})
  /**
   * The close reason of the last connection. With 1006 it is `origin_rejected` if no connection opens because the operator of the
   * server has not listed the origin of the page, and otherwise empty.
   */
  readonly reason?: CloseReason | 'origin_rejected' | (string & {})
}
