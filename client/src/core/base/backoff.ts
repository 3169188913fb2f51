const MAX_MS = 30_000
let failures = 0
let until = 0

/** The delay that the reason of a close frame asks for, as in `upstream_budget;retry_after=12`; 0 if it asks for none. */
export function retryAfterMs(reason: string): number {
  return Number(/;retry_after=(\d{1,6})/.exec(reason)?.[1] ?? 0) * 1000
}

/** A limit that starts at a second and doubles with every failure. */
function limitMs(failed: number, maxMs = MAX_MS): number {
  return Math.min(maxMs, 1000 * 2 ** failed)
}

/** A random delay below that limit. */
export function jitter(failed: number, maxMs?: number): number {
  return Math.random() * limitMs(failed, maxMs)
}

/**
 * The delay before a connection is opened again. All connections of the page that fail at about the same time reconnect
 * together and count as one failure.
 * @param own how often this connection has failed in a row
 */
export function sharedDelayMs(own: number): number {
  const now = Date.now()
  const failed = Math.max(own, failures)
  // Without the second condition, a connection that never works would keep others waiting for as long as itself, and a clock that was
  // set back would keep every connection waiting.
  if (now >= until || until - now > limitMs(failed)) {
    until = now + jitter(failed)
    failures++
  }
  return until - now
}

/** Resets the shared delay. Every message calls this, which proves that the server is there. */
export function recovered(): void {
  failures = 0
}
