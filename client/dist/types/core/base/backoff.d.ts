/** The delay that the reason of a close frame asks for, as in `upstream_budget;retry_after=12`; 0 if it asks for none. */
export declare function retryAfterMs(reason: string): number;
/** A random delay below that limit. */
export declare function jitter(failed: number, maxMs?: number): number;
/**
 * The delay before a connection is opened again. All connections of the page that fail at about the same time reconnect
 * together and count as one failure.
 * @param own how often this connection has failed in a row
 */
export declare function sharedDelayMs(own: number): number;
/** Resets the shared delay. Every message calls this, which proves that the server is there. */
export declare function recovered(): void;
