// Times of the core. A bundler inlines the constants of a module that imports nothing.

/** How often a clock looks at the time. */
export const TICK_MS = 1000
/** A tick that is this much too late shows that the machine slept. Like a clock that was set, that counts as a jump. */
export const JUMP_MS = 4000
/** How long an unused connection stays open, because a component may be mounted again at once. */
export const GRACE_MS = 200
/** How long a connection that has been silent may take to reply to a ping before a command. */
export const PROBE_MS = 1000
/** A ping that has had no reply for this long makes the connection stale; after the same time again, it is dropped. */
export const PATIENCE_MS = 4000
/** How often the response of a call that is still running is asked for, which takes about a minute. */
export const MAX_POLLS = 45
/** An order is not repeated later than this after it failed. The pause and the question about the session take less. */
export const MAX_LATE_MS = 20_000
