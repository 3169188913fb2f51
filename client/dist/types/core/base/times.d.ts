/** How often a clock looks at the time. */
export declare const TICK_MS = 1000;
/** A tick that is this much too late shows that the machine slept. Like a clock that was set, that counts as a jump. */
export declare const JUMP_MS = 4000;
/** How long an unused connection stays open, because a component may be mounted again at once. */
export declare const GRACE_MS = 200;
/** How long a connection that has been silent may take to reply to a ping before a command. */
export declare const PROBE_MS = 1000;
/** A ping that has had no reply for this long makes the connection stale; after the same time again, it is dropped. */
export declare const PATIENCE_MS = 4000;
/** How often the response of a call that is still running is asked for, which takes about a minute. */
export declare const MAX_POLLS = 45;
/** An order is not repeated later than this after it failed. The pause and the question about the session take less. */
export declare const MAX_LATE_MS = 20000;
