import { Refusal } from './refusal.ts'

/** Operations whose requests are counted together. */
export type OperationClass = 'trading' | 'account' | 'reports' | 'ping' | 'other'

/** What one WebSocket may do. */
export interface SocketLimits {
  /** Streams that run at the same time. */
  readonly subscriptions: number
  /** Requests in a minute; of `ping`, in a second. */
  readonly requests: Readonly<Record<OperationClass, number>>
}

/** The limits that services of this family publish. */
export const PUBLISHED_LIMITS: SocketLimits = {
  subscriptions: 100,
  requests: { trading: 360, account: 100, reports: 30, ping: 10, other: 220 },
}

/** Ten times as many requests, for a demo whose tabs and developers share a socket. */
export const GENEROUS_LIMITS: SocketLimits = {
  subscriptions: 100,
  requests: { trading: 3600, account: 1000, reports: 300, ping: 100, other: 2200 },
}

const CLASSES: ReadonlyMap<string, OperationClass> = new Map([
  ['proposal', 'trading'],
  ['proposal_open_contract', 'trading'],
  ['buy', 'trading'],
  ['sell', 'trading'],
  ['balance', 'account'],
  ['statement', 'account'],
  ['portfolio', 'reports'],
  ['profit_table', 'reports'],
  ['ping', 'ping'],
])

const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Counts the requests of one WebSocket in windows of fixed length, each of which begins with a request. */
export class RequestCounts {
  readonly #limits: SocketLimits['requests']
  readonly #windows = new Map<OperationClass, { endsAt: number; count: number }>()

  constructor(limits: SocketLimits['requests']) {
    this.#limits = limits
  }

  /** Counts a request. @throws Refusal if its class has reached its limit */
  count(operation: string): void {
    const kind = CLASSES.get(operation) ?? 'other'
    const now = performance.now()
    let window = this.#windows.get(kind)
    if (!window || window.endsAt <= now) {
      window = { endsAt: now + (kind === 'ping' ? SECOND_MS : MINUTE_MS), count: 0 }
      this.#windows.set(kind, window)
    }
    window.count += 1
    if (window.count > this.#limits[kind])
      throw new Refusal('RateLimit', `You have reached the rate limit for ${operation}.`)
  }
}
