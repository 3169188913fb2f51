// The connections to upstream: which request and which stream is on which, when they come back, and whose share it is.
export type { Browser } from './browser.ts'
export { FairShare } from './fair-share.ts'
export type { Listener, WriteRequest } from './connection-users.ts'
export { OneShots } from './one-shots.ts'
export { PATIENCE_MS } from './recovery.ts'
export type { Carried, StreamLink } from './stream-link.ts'
export { StreamPool } from './stream-pool.ts'
export type { ConnectionDependencies, Connection } from './connection.ts'
