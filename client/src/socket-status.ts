import type { CloseCode, CloseReason } from './catalog.ts'

/** A message of the trading service, either way. */
export type Message = Readonly<Record<string, unknown>>

/** How a socket is doing. */
export interface SocketStatus {
  /**
   * `open`: messages come. `stale`: they should, and do not. `waiting`: it will connect again, at `retryAt` where that is
   * known. `ended`: it will not.
   */
  readonly state: 'connecting' | 'open' | 'stale' | 'waiting' | 'ended'
  /** Milliseconds, as `Date.now()`. */
  readonly retryAt?: number
  /** How the last connection closed. */
  readonly code?: CloseCode | (number & {})
  readonly reason?: CloseReason | (string & {})
}
