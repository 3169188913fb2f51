/** The time by the clock of the server. */
export interface ServerTime {
  /** In milliseconds since 1970. */
  readonly now: number
  /** How far `now` may be from it, in milliseconds. */
  readonly errorMs: number
  /** When the server was last asked for it, in milliseconds of `performance.now()`. */
  readonly measuredAt: number
}

/** How far the clock of a machine may run from another one, as a part of the time that has passed. */
const DRIFT = 1e-4

/** What a client knows of the clock of the server. */
export interface ServerClock {
  /**
   * Notes a time of the server. One that contradicts those before takes their place.
   * @param sentAt when the server was asked, in milliseconds of `performance.now()`; without it, it may have been long ago
   */
  readonly note: (seconds: number, sentAt?: number) => void
  /** The time; undefined before it can be told. */
  readonly get: () => ServerTime | undefined
}

/**
 * Tells the time of the server from what it says now and then, in whole seconds. Between these times it follows the clock that no
 * user can set. That one stands still while some machines sleep, which the other clock shows.
 */
export function serverClock(): ServerClock {
  /** The time of the server less that of `performance.now()` is in between, in milliseconds. */
  let from = -Infinity
  let to = Infinity
  /** When that was so, and the difference between the two clocks of the machine then. */
  let notedAt = 0
  let offset = 0
  let measuredAt = -Infinity
  /** How far the difference may have moved since. Either clock of the machine may be the one that has jumped. */
  const slackMs = (now: number): number => (now - notedAt) * DRIFT + Math.abs(Date.now() - now - offset)
  return {
    note(seconds, sentAt = -Infinity) {
      const now = performance.now()
      const slack = slackMs(now)
      const earliest = seconds * 1000 - now
      const latest = seconds * 1000 + 1000 - sentAt
      from = Math.max(from - slack, earliest)
      to = Math.min(to + slack, latest)
      if (from > to) [from, to] = [earliest, latest]
      notedAt = now
      offset = Date.now() - now
      measuredAt = Math.max(measuredAt, sentAt)
    },
    get() {
      const now = performance.now()
      const errorMs = (to - from) / 2 + slackMs(now)
      return errorMs < Infinity ? { now: now + (from + to) / 2, errorMs, measuredAt } : undefined
    },
  }
}
