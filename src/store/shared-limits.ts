/** How many permits of a key one instance holds. A later statement of the same holder replaces the earlier one. */
interface Holding {
  readonly key: string
  /** Identifies the instance. At most 32 characters of `A-Za-z0-9_-`. */
  readonly holder: string
  readonly count: number
}

/** Calls of the current minute that one instance may spend without asking again. */
export interface CallLease {
  /** 0 when all calls of the minute have been leased. */
  readonly calls: number
  /** Time from the store's reply to the end of the minute, which ends the lease as well. */
  readonly endsInMs: number
}

/**
 * Limits that hold over all instances of a store, measured by the store's clock. The operations are atomic, succeed even
 * when the store is full, and reject with StoreUnavailable while it is unavailable.
 */
export interface SharedLimits {
  /**
   * Claims permits for a holder: `count` in all. Returns false, and leaves the holder with those it has, if it would then hold
   * more than `limit` together with the others. Holders that have stated nothing for {@link SILENCE_MS} do not count.
   */
  claim(holding: Holding, limit: number): Promise<boolean>
  /** States what holders have, whatever the limit; 0 gives all back. The statements go out at once. */
  hold(holdings: readonly Holding[]): Promise<void>
  /** Leases half of the calls that are left of `limit` in the current minute of the store's clock, and at least one. */
  leaseCalls(key: string, limit: number): Promise<CallLease>
  /**
   * Takes the next stretch of time in a queue, of which no more than {@link MAX_QUEUE_MS} are ever ahead: later callers
   * share its end.
   * @returns after how many milliseconds it begins: 0 unless earlier stretches have yet to end
   */
  enqueue(key: string, durationMs: number): Promise<number>
}

/** A holder that was silent for this long is considered dead. */
export const SILENCE_MS = 25_000

/** The longest queue of {@link SharedLimits.enqueue}, and the longest time that a page is asked to stay away. */
export const MAX_QUEUE_MS = 3_600_000
