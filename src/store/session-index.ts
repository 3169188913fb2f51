/** An entry of an index, as its owner adds it. */
interface NewEntry {
  /** Unique within its key: 1 to 32 characters of `A-Za-z0-9_-`. */
  readonly id: string
  /** Any text without a space. */
  readonly value: string
  /** When the store forgets the entry (epoch ms). */
  readonly expiresAt: number
}

/** An entry of an index, as the store has it. */
export interface IndexEntry extends NewEntry {
  /** Grows with every entry of a key. The store's time (epoch ms), or a little more so that the entry is the newest. */
  readonly addedAt: number
}

/** What has become of an entry. */
export interface EntryState {
  /** The entry is there, and {@link SessionIndex.end} has not named it. */
  readonly isListed: boolean
  /** How long ago {@link SessionIndex.endAll} was called for the key (ms); undefined if not within {@link ENDED_MS}. */
  readonly endedAgoMs: number | undefined
  /** The latest time that {@link SessionIndex.endIssued} was called with, by mark; -Infinity without a call. */
  readonly endedUntil: Readonly<Record<IssueMark, number>>
}

/** Which entries {@link SessionIndex.endIssued} concerns: all, or only those of sessions that know no `sid`. */
export type IssueMark = 'issued' | 'sidless'

/**
 * Entries by key, such as the sessions of a subject. The operations are atomic for a key, measure time by the store's clock,
 * and reject with StoreUnavailable while it is unavailable. Those that end or remove succeed even when the store is full.
 */
export interface SessionIndex {
  /**
   * Adds an entry. Returns the number of entries that have not expired, the new one included.
   * @param after an {@link IndexEntry.addedAt} of another key, after which the entry is to come; 0 for none
   */
  add(key: string, entry: NewEntry, after: number): Promise<number>
  /** The entries that have not expired, the oldest first. */
  list(key: string): Promise<readonly IndexEntry[]>
  /** Notes for {@link ENDED_MS} that all entries so far are ended, and returns them. It removes none. */
  endAll(key: string): Promise<readonly IndexEntry[]>
  /**
   * Notes that the entries of sessions are ended whose ID token was issued until a time, and returns all. It removes none. The
   * note lasts for {@link ENDED_MS} at least. One of an earlier time does not replace one of a later.
   * @param until epoch s by the clock of the provider
   */
  endIssued(key: string, mark: IssueMark, until: number): Promise<readonly IndexEntry[]>
  /** Notes that these entries are ended. It removes none. */
  end(key: string, ids: readonly string[]): Promise<void>
  remove(key: string, ids: readonly string[]): Promise<void>
  look(key: string, id: string): Promise<EntryState>
}

/** How long the store remembers the last {@link SessionIndex.endAll} of a key. */
export const ENDED_MS = 600_000
