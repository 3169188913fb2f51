/** The time by the clock of the server. */
export interface ServerTime {
    /** In milliseconds since 1970. */
    readonly now: number;
    /** How far `now` may be from it, in milliseconds. */
    readonly errorMs: number;
    /** When the server was last asked for it, in milliseconds of `performance.now()`. */
    readonly measuredAt: number;
}
/** What a client knows of the clock of the server. */
export interface ServerClock {
    /**
     * Notes a time of the server. One that contradicts those before takes their place.
     * @param sentAt when the server was asked, in milliseconds of `performance.now()`; without it, it may have been long ago
     */
    readonly note: (seconds: number, sentAt?: number) => void;
    /** The time; undefined before it can be told. */
    readonly get: () => ServerTime | undefined;
}
/**
 * Tells the time of the server from what it says now and then, in whole seconds. Between these times it follows the clock that no
 * user can set. That one stands still while some machines sleep, which the other clock shows.
 */
export declare function serverClock(): ServerClock;
