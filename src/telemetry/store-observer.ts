/**
 * Why a request failed: it was not sent, no reply came in time, the connection broke, the reply was an error, or too few
 * replicas confirmed it.
 */
export const STORE_FAILURES = ['down', 'timeout', 'lost', 'refused', 'unconfirmed'] as const
/** One of {@link STORE_FAILURES}. */
type StoreFailure = (typeof STORE_FAILURES)[number]

/**
 * Why a server that responds refuses writes: it is out of memory, its disk fails, it has too few replicas, or it is a
 * replica itself. These are the error codes of Redis in lower case.
 */
export const WRITE_REFUSALS = ['oom', 'misconf', 'noreplicas', 'readonly'] as const
/** One of {@link WRITE_REFUSALS}. */
export type WriteRefusal = (typeof WRITE_REFUSALS)[number]

/** Is notified about the requests to a store. No method may throw. */
export interface StoreObserver {
  /** A request that was sent has ended, successfully or not. */
  asked(seconds: number): void
  failed(failure: StoreFailure): void
  refusedWrite(reason: WriteRefusal): void
}

/** The servers of a store report this about themselves. A field is missing while it is unknown. */
export interface StoreFacts {
  /** Live sessions of all instances. An estimate if there are many keys. */
  readonly sessions?: number
  /** The memory of the server that is closest to its limit. */
  readonly memory?: {
    /** The memory that counts against the limit. */
    readonly usedBytes: number
    /** 0 means no limit. */
    readonly maxBytes: number
  }
}
