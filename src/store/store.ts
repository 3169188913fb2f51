import type { StoreFacts, StoreObserver } from '../telemetry/store-observer.ts'

/** A value and the moment the store will forget it (epoch ms). */
export interface StoredValue {
  readonly value: string
  readonly expiresAt: number
}

/** What tells those who come later why a key is gone. Its own key lives in the same slot of a Cluster. */
export interface Tombstone extends StoredValue {
  readonly key: string
}

/**
 * What sessions and login transactions need of a store: single-key operations, each atomic. No write can bring a
 * removed key back, but {@link Store.create} and {@link Store.count}. Every method rejects with {@link StoreUnavailable} while the store is away.
 */
export interface Store {
  /**
   * For how long at most (ms) a value that was read may be relied on while {@link onChange} tells nothing. Infinity
   * where every change is told; else short, since none is.
   */
  readonly staleMs: number
  /** Writes a key that does not exist yet. False, and nothing written, when it does. */
  create(key: string, value: string, expiresAt: number): Promise<boolean>
  /** The same for a lock, which {@link removeIf} gives back: there is room for it also where there is none for anything. */
  lock(key: string, owner: string, expiresAt: number): Promise<boolean>
  read(key: string): Promise<StoredValue | undefined>
  /** The same, for the moment: {@link onChange} need not hear of the key. So for keys that a stranger names. */
  readUntracked(key: string): Promise<StoredValue | undefined>
  /** Glances: values in the order of the keys; undefined where there is none. */
  readMany(keys: readonly string[]): Promise<(string | undefined)[]>
  /** Compare-and-set: writes only where `expected` still stands, also where there is no room. False when it does not. */
  replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean>
  /**
   * Moves the expiry later, never earlier, and reads the key, in one step; a key that is gone stays gone. Where the
   * store takes no writes at the moment, it only reads.
   */
  extend(key: string, expiresAt: number): Promise<StoredValue | undefined>
  /** True when this call removed it. */
  remove(key: string): Promise<boolean>
  /**
   * Removes a key and puts a tombstone in its place, in one step, and nothing where the key is not there. Returns what it
   * held. Also where the store has no room for the tombstone the key is removed.
   */
  bury(key: string, tombstone: Tombstone): Promise<string | undefined>
  /** Removes the key if it still holds `expected`. */
  removeIf(key: string, expected: string): Promise<boolean>
  /** Adds to a counter and returns the count. The first makes it, and sets when it starts again from nothing. */
  count(key: string, by: number, expiresAt: number): Promise<number>
  /**
   * Hears of every change to a key that was read here, by whoever it was made, expiry included, where {@link staleMs}
   * is Infinity; else of those made here. Of an {@link extend} made here it need not hear: the caller knows.
   * `undefined`: any key may have changed untracked, because the connection was in doubt. Listeners must not throw.
   */
  onChange(listener: (key: string | undefined) => void): void
  /**
   * Whether what was written to the key so far would outlive its server, waited for briefly. Undefined where nothing
   * is replicated. Never rejects.
   */
  isReplicated(key: string): Promise<boolean | undefined>
  /** Has somebody told of every request from here on. Nothing is told of a store without round trips. */
  observe(observer: StoreObserver): void
  /** What its servers tell of themselves, a few seconds old at most; undefined where they do not answer. Never rejects. */
  facts(): Promise<StoreFacts | undefined>
  /** Why the store refuses what takes room, or any write, and what helps, for an operator. Undefined while it does not. */
  refusesWrites(): string | undefined
  /** Since when the store has been unreachable (epoch ms), undefined while it is there. */
  unavailableSince(): number | undefined
  close(): Promise<void>
}

/** The store did not answer, or not in time. Nothing is known about whether a write happened. */
export class StoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the session store is unavailable', { cause })
    this.name = 'StoreUnavailable'
  }
}
