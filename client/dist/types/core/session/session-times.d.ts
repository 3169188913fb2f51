/**
 * The interval of checks while a session socket is open, and the maximum delay before it is opened again. A server without
 * a session socket refuses every handshake.
 */
export declare const SLOW_MS = 300000;
/** How long before its end a session counts as expiring. */
export declare const EXPIRING_MS = 60000;
/** `now` is in whole seconds, so a smaller change of the difference between the clocks is ignored. */
export declare const SKEW_MS = 2000;
