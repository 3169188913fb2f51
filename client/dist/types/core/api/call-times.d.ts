/** Minimum pause before a call is repeated. Up to the same time is added at random. */
export declare const PAUSE_MS = 500;
/** A call is not repeated if the server asks for a longer pause. */
export declare const MAX_PAUSE_MS = 5000;
/** An order is not repeated later than this after it failed. The pause and the question about the session take less. */
export declare const MAX_LATE_MS = 20000;
/** How often the response of a call that is still running is asked for, which takes about a minute. */
export declare const MAX_POLLS = 45;
