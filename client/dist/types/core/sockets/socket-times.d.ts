/** Handshake timeout. The server itself gives up sooner. */
export declare const CONNECT_MS = 20000;
/** A connection that has been silent for this long is sent a ping. */
export declare const SILENCE_MS = 10000;
/** A connection on which nothing has been sent for this long is sent a ping, since the trading service ends idle ones. */
export declare const KEEP_ALIVE_MS = 30000;
/** A ping that has had no reply for this long makes the connection stale; after the same time again, it is dropped. */
export declare const PATIENCE_MS = 4000;
/** The same two limits while the browser reports that it is offline. */
export declare const OFFLINE_SILENCE_MS = 1000;
export declare const OFFLINE_PATIENCE_MS = 2000;
/** A message that arrives sooner after the ping of a stale connection may have waited in the browser while the machine slept. */
export declare const QUEUED_MS = 1000;
/** A connection that has been silent for longer than this is sent a ping before a command. */
export declare const FRESH_MS = 3000;
/** Timeout of that ping. */
export declare const PROBE_MS = 1000;
/** How many pings count for the latency. */
export declare const LATENCIES = 5;
/** The delays after losses grow until a connection has worked for this long. */
export declare const STABLE_MS = 10000;
/** Timeouts until the reply to a message arrives. */
export declare const REQUEST_MS = 15000;
export declare const COMMAND_MS = 30000;
/** The minimum delay before a refused stream is requested again. */
export declare const AGAIN_MS = 1000;
/** How long a stream without subscribers is kept, because a component may be mounted again at once. */
export declare const GRACE_MS = 100;
/** How long a link without streams is kept, because a chart may have changed its symbol. */
export declare const LINGER_MS = 1000;
