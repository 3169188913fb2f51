// A bundler inlines the constants of a module that imports nothing.

/** Minimum pause before a call is repeated. Up to the same time is added at random. */
export const PAUSE_MS = 500
/** A call is not repeated if the server asks for a longer pause. */
export const MAX_PAUSE_MS = 5000
/** An order is not repeated later than this after it failed. The pause and the question about the session take less. */
export const MAX_LATE_MS = 20_000
/** How often the response of a call that is still running is asked for, which takes about a minute. */
export const MAX_POLLS = 45
