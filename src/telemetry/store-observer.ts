/** Why a request to the store has failed: nothing was sent, no answer came in time, the connection broke, or a no came back. */
export const STORE_FAILURES = ['down', 'timeout', 'lost', 'refused'] as const
/** One of {@link STORE_FAILURES}. */
export type StoreFailure = (typeof STORE_FAILURES)[number]

/**
 * Why a server that answers refuses writes: no memory left, its disk fails, too few replicas, or it is one itself. In lower
 * case what Redis says.
 */
export const WRITE_REFUSALS = ['oom', 'misconf', 'noreplicas', 'readonly'] as const
/** One of {@link WRITE_REFUSALS}. */
export type WriteRefusal = (typeof WRITE_REFUSALS)[number]

/** What is told of the requests to a store. None of it may throw. */
export interface StoreObserver {
  /** One was sent, and is over after so many seconds, however it ended. */
  asked(seconds: number): void
  failed(failure: StoreFailure): void
  refusedWrite(reason: WriteRefusal): void
}

/** What the servers of a store tell of themselves, as far as they do. */
export interface StoreFacts {
  /** Sessions that are alive, of all instances; an estimate where there are many keys. */
  readonly sessions?: number
  /** Of the server that is nearest to its limit. */
  readonly memory?: {
    /** What counts against the limit. */
    readonly usedBytes: number
    /** 0: there is no limit. */
    readonly maxBytes: number
  }
}
