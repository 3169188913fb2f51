import { LRUCache } from 'lru-cache'
import {
  ENDED_MS,
  type EntryState,
  type IndexEntry,
  type IssueMark,
  type NewEntry,
  type SessionIndex,
} from './session-index.ts'

/** More subjects than one development process ever has; the oldest are evicted first. */
const MAX_KEYS = 10_000

interface Indexed {
  readonly entries: Map<string, IndexEntry>
  readonly ended: Set<string>
  /** When all were ended (epoch ms). */
  allEndedAt?: number
  readonly endedUntil: Record<IssueMark, number>
}

/** {@link SessionIndex} inside this process. */
export class MemoryIndex implements SessionIndex {
  readonly #byKey = new LRUCache<string, Indexed>({ max: MAX_KEYS })

  async add(key: string, entry: NewEntry, after: number): Promise<number> {
    const { entries, ended } = this.#open(key)
    const now = Date.now()
    for (const { id, expiresAt } of entries.values()) {
      if (expiresAt > now) continue
      entries.delete(id)
      ended.delete(id)
    }
    const newest = Math.max(after, ...[...entries.values()].map(({ addedAt }) => addedAt))
    entries.set(entry.id, { ...entry, addedAt: Math.max(now, newest + 1) })
    return entries.size
  }

  async list(key: string): Promise<readonly IndexEntry[]> {
    const now = Date.now()
    return [...(this.#byKey.get(key)?.entries.values() ?? [])].filter(({ expiresAt }) => expiresAt > now)
  }

  endAll(key: string): Promise<readonly IndexEntry[]> {
    this.#open(key).allEndedAt = Date.now()
    return this.list(key)
  }

  endIssued(key: string, mark: IssueMark, until: number): Promise<readonly IndexEntry[]> {
    const { endedUntil } = this.#open(key)
    endedUntil[mark] = Math.max(endedUntil[mark], until)
    return this.list(key)
  }

  async end(key: string, ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#byKey.get(key)?.ended.add(id)
  }

  async remove(key: string, ids: readonly string[]): Promise<void> {
    const { entries, ended } = this.#open(key)
    for (const id of ids) {
      entries.delete(id)
      ended.delete(id)
    }
  }

  async look(key: string, id: string): Promise<EntryState> {
    const { entries, ended, endedUntil, allEndedAt = -Infinity } = this.#open(key)
    const agoMs = Date.now() - allEndedAt
    const isListed = entries.has(id) && !ended.has(id)
    return { isListed, endedAgoMs: agoMs < ENDED_MS ? agoMs : undefined, endedUntil: { ...endedUntil } }
  }

  #open(key: string): Indexed {
    const indexed = this.#byKey.get(key) ?? {
      entries: new Map(),
      ended: new Set(),
      endedUntil: { issued: -Infinity, sidless: -Infinity },
    }
    this.#byKey.set(key, indexed)
    return indexed
  }
}
