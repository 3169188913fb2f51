const MAX_MS = 30_000
let failures = 0
let until = 0

/** The delay that the reason of a close frame asks for, as in `upstream_budget;retry_after=12`; 0 if it asks for none. */
export function retryAfterMs(reason: string): number {
  return Number(/;retry_after=(\d{1,6})/.exec(reason)?.[1] ?? 0) * 1000
}

/** A random delay below a limit that starts at a second and doubles with every failure. */
export function jitter(failed: number, maxMs = MAX_MS): number {
  return Math.random() * Math.min(maxMs, 1000 * 2 ** failed)
}

/**
 * The delay before a connection is opened again. All connections of the page that fail at about the same time reconnect
 * together and count as one failure.
 * @param own how often this connection has failed in a row
 */
export function sharedDelayMs(own: number): number {
  const now = Date.now()
  // Without the second condition, a clock that was set back would keep every connection waiting.
  if (now >= until || until - now > MAX_MS) until = now + jitter(Math.max(own, failures++))
  return until - now
}

/** Resets the shared delay. A new connection calls this on its first message, which proves that the server is back. */
export function recovered(): void {
  failures = 0
}
