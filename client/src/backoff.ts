const MAX_MS = 30_000
let failures = 0
let until = 0

/** Milliseconds that the reason of a close frame asks for, as in `upstream_budget;retry_after=12`. */
export function retryAfterMs(reason: string): number {
  return Number(/;retry_after=(\d{1,6})/.exec(reason)?.[1] ?? 0) * 1000
}

/** A random time below a limit that doubles with every failure. */
export function jitter(failed: number, maxMs = MAX_MS): number {
  return Math.random() * Math.min(maxMs, 1000 * 2 ** failed)
}

/**
 * How long a connection waits before it comes back. All connections of the page that fail at about the same time
 * come back together, and count as one failure.
 * @param own how often this connection failed in a row
 */
export function sharedDelayMs(own: number): number {
  const now = Date.now()
  // A clock that was set back would otherwise hold everybody off.
  if (now >= until || until - now > MAX_MS) until = now + jitter(Math.max(own, failures++))
  return until - now
}

/** A new connection has brought a message: the server is back. */
export function recovered(): void {
  failures = 0
}
