// A bundler inlines the constants of a module that imports nothing.

/**
 * The interval of checks while a session socket is open, and the maximum delay before it is opened again. A server without
 * a session socket refuses every handshake.
 */
export const SLOW_MS = 300_000
/** How long before its end a session counts as expiring. */
export const EXPIRING_MS = 60_000
/** `now` is in whole seconds, so a smaller change of the difference between the clocks is ignored. */
export const SKEW_MS = 2000
