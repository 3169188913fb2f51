// A bundler inlines the constants of a module that imports nothing.

/** Handshake timeout. The server itself gives up sooner. */
export const CONNECT_MS = 20_000
/** A connection that has been silent for this long is sent a ping. */
export const SILENCE_MS = 10_000
/** A connection on which nothing has been sent for this long is sent a ping, since the trading service ends idle ones. */
export const KEEP_ALIVE_MS = 30_000
/** A ping that has had no reply for this long makes the connection stale; after the same time again, it is dropped. */
export const PATIENCE_MS = 4000
/** The same two limits while the browser reports that it is offline. */
export const OFFLINE_SILENCE_MS = 1000
export const OFFLINE_PATIENCE_MS = 2000
/** A message that arrives sooner after the ping of a stale connection may have waited in the browser while the machine slept. */
export const QUEUED_MS = 1000
/** A connection that has been silent for longer than this is sent a ping before a command. */
export const FRESH_MS = 3000
/** Timeout of that ping. */
export const PROBE_MS = 1000
/** How many pings count for the latency. */
export const LATENCIES = 5
/** The delays after losses grow until a connection has worked for this long. */
export const STABLE_MS = 10_000
/** Timeouts until the reply to a message arrives. */
export const REQUEST_MS = 15_000
export const COMMAND_MS = 30_000
/** The minimum delay before a refused stream is requested again. */
export const AGAIN_MS = 1000
/** How long a stream without subscribers is kept, because a component may be mounted again at once. */
export const GRACE_MS = 100
/** How long a link without streams is kept, because a chart may have changed its symbol. */
export const LINGER_MS = 1000
