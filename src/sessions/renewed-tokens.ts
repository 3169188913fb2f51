import { LRUCache } from 'lru-cache'
import { besideKey } from '../store/keys.ts'
import type { Session } from './session.ts'
import type { Store } from '../store/store.ts'

/** A token is renewed because of a 401 of upstream at most once in this time. */
const RENEWED_MS = 30_000
/** A session beyond this limit is told about again. */
const MAX_SESSIONS = 10_000
/** The mark of a renewal says nothing of the new token yet, or that upstream has accepted it. */
const RENEWED = 'renewed'
const ACCEPTED = 'accepted'

/** A renewal that a 401 of upstream has caused. */
interface RecentRenewal {
  /** When another one may follow. */
  readonly retryAfterMs: number
  /** Whether another instance may have seen upstream accept the new token. */
  readonly isAccepted: boolean
}

/** The renewals that 401s of upstream have caused, on any instance. Where there was none, nothing is read or written. */
export class RenewedTokens {
  readonly #store: Store
  /** The sealed texts of the sessions whose new tokens this process has seen accepted, by session. */
  readonly #accepted = new LRUCache<string, string>({ max: MAX_SESSIONS })

  constructor(store: Store) {
    this.#store = store
  }

  /** A token was renewed, because upstream had refused it. @throws StoreUnavailable */
  async note(key: string): Promise<void> {
    await this.#store.lock(besideKey(key, 'renewed'), RENEWED, RENEWED_MS)
  }

  /** The renewal of less than half a minute ago that upstream's 401 has caused, if there is one. @throws StoreUnavailable */
  async recent(key: string): Promise<RecentRenewal | undefined> {
    const { value, now } = await this.#store.readMarked(besideKey(key, 'renewed'), '')
    // Both times are the store's.
    const mark = value === undefined ? undefined : await this.#store.readUntracked(besideKey(key, 'renewed'))
    if (mark === undefined) return undefined
    const leftMs = Math.min(Math.max(mark.expiresAt - now, 1), RENEWED_MS)
    return { retryAfterMs: leftMs, isAccepted: mark.value === ACCEPTED }
  }

  /** Whether this process has seen upstream accept the token of a session, which was renewed after a 401. */
  isAccepted({ key, sealed }: Session): boolean {
    return this.#accepted.get(key) === sealed
  }

  /** Upstream has accepted the token of a session. Tells the other instances, once, if it was renewed after a 401. */
  accepted({ key, sealed, record }: Session): void {
    if (record.isAfterRefusal !== true || this.#accepted.get(key) === sealed) return
    this.#accepted.set(key, sealed)
    // While the store is away, only this process knows.
    void this.#tell(key).catch(() => undefined)
  }

  async #tell(key: string): Promise<void> {
    const mark = await this.#store.readUntracked(besideKey(key, 'renewed'))
    if (mark?.value === RENEWED) await this.#store.replace(besideKey(key, 'renewed'), RENEWED, ACCEPTED, mark.expiresAt)
  }
}
