/** Number of checks before the end of a session is believed, since the cookie of a new login may arrive meanwhile. */
export declare const CHECKS = 4;
export declare const CHECK_INTERVAL_MS = 600;
export declare const RESPONSE_TIMEOUT_MS = 10000;
/**
 * The interval of checks while a session socket is open, and the maximum delay before it is opened again. A server without
 * a session socket refuses every handshake.
 */
export declare const SLOW_MS = 300000;
/** The interval of checks without a session socket, for example because the server refuses one more with 4429. */
export declare const POLL_MS = 30000;
export declare const CLOCK_MS = 5000;
/** Timers that stood still for this long show that the machine slept. Those of a hidden page may be a minute late. */
export declare const SLEEP_MS = 120000;
/** How long before its end a session counts as expiring. */
export declare const EXPIRING_MS = 60000;
/** `now` is in whole seconds, so a smaller change of the difference between the clocks is ignored. */
export declare const SKEW_MS = 2000;
