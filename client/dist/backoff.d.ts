/** Milliseconds that the reason of a close frame asks for, as in `upstream_budget;retry_after=12`. */
export declare function retryAfterMs(reason: string): number;
/** A random time below a limit that doubles with every failure. */
export declare function jitter(failed: number, maxMs?: number): number;
/**
 * How long a connection waits before it comes back. All connections of the page that fail at about the same time
 * come back together, and count as one failure.
 * @param own how often this connection failed in a row
 */
export declare function sharedDelayMs(own: number): number;
/** A new connection has brought a message: the server is back. */
export declare function recovered(): void;
