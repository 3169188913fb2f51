// A bundler inlines the constants of a module that imports nothing.

/** Number of checks before the end of a session is believed, since the cookie of a new login may arrive meanwhile. */
export const CHECKS = 4
export const CHECK_INTERVAL_MS = 600
export const RESPONSE_TIMEOUT_MS = 10_000
/**
 * The interval of checks while a session socket is open, and the maximum delay before it is opened again. A server without
 * a session socket refuses every handshake.
 */
export const SLOW_MS = 300_000
/** The interval of checks without a session socket, for example because the server refuses one more with 4429. */
export const POLL_MS = 30_000
export const CLOCK_MS = 5000
/** Timers that stood still for this long show that the machine slept. Those of a hidden page may be a minute late. */
export const SLEEP_MS = 120_000
/** How long before its end a session counts as expiring. */
export const EXPIRING_MS = 60_000
/** `now` is in whole seconds, so a smaller change of the difference between the clocks is ignored. */
export const SKEW_MS = 2000
