import { LRUCache } from 'lru-cache'
import { LEFT_MS, SESSION_KEYS } from './keys.ts'
import type { SessionIndex } from './session-index.ts'
import { MINUTE_MS, type SharedLimits } from './shared-limits.ts'
import type { Ledger, LedgerTerms } from './ledger/ledger.ts'
import type { MarkedReading } from './marked-reading.ts'
import type { Store, StoreCondition, StoredValue, Tombstone } from './store.ts'
import type { StoreFacts } from '../telemetry/store-observer.ts'

/** More keys than one development process ever holds; the oldest are evicted first. */
const MAX_KEYS = 100_000

/** A store inside this process, for development. It ends with the process, and no other process sees it. */
export class MemoryStore implements Store {
  readonly staleMs = Infinity
  readonly reportsBurials = true
  /** A process alone shares its limits with no other, and itself counts what it was granted. */
  readonly limits: SharedLimits = {
    claim: async ({ count }, limit) => count <= limit,
    hold: async () => undefined,
    leaseCalls: async (key, limit) => {
      const endsInMs = MINUTE_MS - (Date.now() % MINUTE_MS)
      const isFirst = await this.create(key, '', Date.now() + endsInMs)
      return { calls: isFirst ? limit : 0, endsInMs }
    },
    enqueue: async () => 0,
  }
  readonly #values = new LRUCache<string, StoredValue>({
    max: MAX_KEYS,
    ttl: 1,
    ttlResolution: 0,
    disposeAfter: (_value, key, reason) => {
      if (reason === 'expire' || reason === 'evict') this.#notify(key)
    },
  })
  #index: SessionIndex | undefined
  readonly #listeners: ((key: string | undefined) => void)[] = []

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    if (this.#values.has(key)) return false
    return this.#write(key, value, expiresAt)
  }

  async lock(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const held = this.#values.get(key)?.value
    return (held === undefined || held === owner) && this.#write(key, owner, Date.now() + ttlMs)
  }

  async read(key: string): Promise<StoredValue | undefined> {
    return this.#values.get(key)
  }

  readUntracked(key: string): Promise<StoredValue | undefined> {
    return this.read(key)
  }

  async readMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    return keys.map((key) => this.#values.get(key)?.value)
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const held = this.#values.get(key)?.value
    if (held === undefined || (held !== expected && held !== value)) return false
    return this.#write(key, value, expiresAt)
  }

  async extend(key: string, expiresAt: number): Promise<StoredValue | undefined> {
    const current = this.#values.get(key)
    if (current !== undefined && current.expiresAt < expiresAt) this.#write(key, current.value, expiresAt)
    return this.#values.get(key)
  }

  async remove(key: string): Promise<boolean> {
    const removed = this.#values.delete(key)
    if (removed) this.#notify(key)
    return removed
  }

  async removeIf(key: string, expected: string): Promise<boolean> {
    return this.#values.get(key)?.value === expected && (await this.remove(key))
  }

  async bury(key: string, tombstone: Tombstone): Promise<string | undefined> {
    const current = this.#values.get(key)
    if (current === undefined) return this.#values.get(tombstone.leftKey)?.value
    const left = `${tombstone.value} ${current.value}`
    this.#write(tombstone.key, tombstone.value, tombstone.expiresAt)
    this.#write(tombstone.leftKey, left, Date.now() + LEFT_MS)
    await this.remove(key)
    return left
  }

  async count(key: string, by: number, ttlMs: number): Promise<number> {
    const current = this.#values.get(key)
    const count = Number(current?.value ?? 0) + by
    this.#write(key, String(count), current?.expiresAt ?? Date.now() + ttlMs)
    return count
  }

  onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
  }

  watchBurials(): void {
    // Every change is reported.
  }

  async isReplicated(): Promise<undefined> {
    return undefined
  }

  async openIndex(): Promise<SessionIndex> {
    const { MemoryIndex } = await import('./memory-index.ts')
    return (this.#index ??= new MemoryIndex())
  }

  async openLedger(_name: string, terms: LedgerTerms): Promise<Ledger> {
    const { MemoryLedger } = await import('./ledger/memory-ledger.ts')
    return new MemoryLedger(terms)
  }

  async openRefusals(): Promise<undefined> {
    return undefined
  }

  async readMarked(key: string, mark: string): Promise<MarkedReading> {
    const value = this.#values.get(key)?.value
    const isKnown = mark !== '' && value?.startsWith(`${mark} `) === true
    return { isKnown, value: isKnown ? undefined : value, now: Date.now() }
  }

  async openConfirmed(): Promise<this> {
    return this
  }

  watchReplication(): void {
    // There are no replicas.
  }

  observe(): void {
    // There are no round trips to observe.
  }

  async facts(): Promise<StoreFacts> {
    const { prefix, length } = SESSION_KEYS
    const keys = [...this.#values.keys()]
    return { sessions: keys.filter((key) => key.startsWith(prefix) && key.length === length).length }
  }

  warnings(): [] {
    return []
  }

  availableForMs(): number {
    return Infinity
  }

  unavailableSince(): undefined {
    return undefined
  }

  condition(): StoreCondition {
    return { why: [], share: 1, clock: { hereAheadMs: undefined, mastersDifferMs: 0 } }
  }

  async close(): Promise<void> {
    this.#values.clear()
  }

  #write(key: string, value: string, expiresAt: number): boolean {
    const ttl = expiresAt - Date.now()
    // To lru-cache a ttl of 0 means "never expires".
    if (ttl <= 0) this.#values.delete(key)
    else this.#values.set(key, { value, expiresAt }, { ttl })
    this.#notify(key)
    return true
  }

  #notify(key: string): void {
    for (const listener of this.#listeners) listener(key)
  }
}
