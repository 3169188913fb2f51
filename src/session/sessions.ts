import { createHmac } from 'node:crypto'
import type { Envelope } from '../store/envelope.ts'
import { sessionKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'

/** What a finished login leaves behind. It never leaves the server. Times are epoch ms. */
export interface SessionRecord {
  readonly accessToken: string
  readonly tokenExpiresAt: number
  readonly tokenLifetimeMs: number
  readonly refreshToken?: string
  readonly scope: string
  /** When the session ends whatever the user does. */
  readonly endsAt: number
  /** The login transaction that made it; its mark ends with the session. */
  readonly loginKey: string
}

/** A session as it was read. */
export interface Session {
  readonly id: string
  readonly key: string
  /** What the log calls it. */
  readonly tag: string
  readonly record: SessionRecord
  /** When it ends unless it is used (epoch ms). */
  readonly idleEndsAt: number
  /** The stored text, for compare-and-set. */
  readonly sealed: string
}

/** Why a session ended, where that was caused. `gone`: found missing in the store. */
export type EndReason = 'logout' | 'replaced' | 'expired' | 'refused' | 'gone'

/** How long a session lives (ms). */
export interface SessionLimits {
  readonly idleMs: number
  readonly maxMs: number
}

/** Sessions as the store holds them: sealed, found by the hash of their id, and never brought back once ended. */
export class Sessions {
  readonly limits: SessionLimits
  readonly #store: Store
  readonly #envelope: Envelope
  readonly #tagSecret: string
  readonly #endListeners: ((key: string, reason: EndReason, wasThere: boolean) => void)[] = []
  readonly #unreplicatedListeners: ((key: string) => void)[] = []

  /** @param tagSecret keys the hash that stands for a session in the log */
  constructor(store: Store, envelope: Envelope, limits: SessionLimits, tagSecret: string) {
    this.#store = store
    this.#envelope = envelope
    this.limits = limits
    this.#tagSecret = tagSecret
  }

  /** The short name of a session in the log: it leads back neither to the id nor to the store's key. */
  tag(key: string): string {
    return createHmac('sha256', this.#tagSecret).update(key).digest('base64url').slice(0, 10)
  }

  /** @throws StoreUnavailable; Error when the id exists already, which 256 random bits rule out */
  async create(id: string, record: SessionRecord): Promise<void> {
    const key = sessionKey(id)
    const created = await this.#store.create(key, this.#seal(key, id, record), this.#expiry(record))
    if (!created) throw new Error('a session of this id exists already')
  }

  /** Undefined when there is none, or when it cannot be read here: another instance may still understand it. */
  async load(id: string): Promise<Session | undefined> {
    const key = sessionKey(id)
    const stored = await this.#store.read(key)
    if (stored === undefined) return undefined
    const opened = this.#envelope.open(key, id, stored.value)
    if (opened === undefined) return undefined
    const record = parseRecord(opened)
    return (
      record && { id, key, tag: this.tag(key), record, idleEndsAt: stored.expiresAt, sealed: stored.value }
    )
  }

  /** Compare-and-set. Undefined when the session was changed or ended meanwhile: read it again. */
  async replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const { id, key, tag } = session
    const sealed = this.#seal(key, id, record)
    const idleEndsAt = this.#expiry(record)
    return (await this.#store.replace(key, session.sealed, sealed, idleEndsAt))
      ? { id, key, tag, record, idleEndsAt, sealed }
      : undefined
  }

  /** Counts as use: moves the idle limit. */
  async touch(session: Session): Promise<void> {
    await this.#store.extend(session.key, this.#expiry(session.record))
  }

  /**
   * Ends a session everywhere. True when it was still there. Where Redis has replicas it waits briefly for one, so
   * that a failover does not bring the session back.
   */
  async end(key: string, reason: EndReason): Promise<boolean> {
    const wasThere = await this.#store.remove(key)
    this.#tell(key, reason, wasThere)
    await this.#replicate(key)
    return wasThere
  }

  /** Ends a session if it still is as it was read. False when it was changed or ended meanwhile: read it again. */
  async endAsRead({ key, sealed }: Session, reason: EndReason): Promise<boolean> {
    const ended = await this.#store.removeIf(key, sealed)
    if (!ended) return false
    this.#tell(key, reason, true)
    await this.#replicate(key)
    return true
  }

  /** Hears of every ending that no replica confirmed: a failover right now could bring the session back. */
  onUnreplicatedEnd(listener: (key: string) => void): void {
    this.#unreplicatedListeners.push(listener)
  }

  /** Hears of every ending that this process caused; `wasThere` is false when there was nothing left to end. */
  onEnd(listener: (key: string, reason: EndReason, wasThere: boolean) => void): void {
    this.#endListeners.push(listener)
  }

  async #replicate(key: string): Promise<void> {
    // Also of one that was gone already: who ended it may not have waited.
    if ((await this.#store.isReplicated(key)) !== false) return
    for (const listener of this.#unreplicatedListeners) listener(key)
  }

  #tell(key: string, reason: EndReason, wasThere: boolean): void {
    for (const listener of this.#endListeners) listener(key, reason, wasThere)
  }

  #seal(key: string, id: string, record: SessionRecord): string {
    return this.#envelope.seal(key, id, JSON.stringify(record))
  }

  #expiry(record: SessionRecord): number {
    return Math.min(record.endsAt, Date.now() + this.limits.idleMs)
  }
}

const SHAPE = {
  accessToken: 'string',
  tokenExpiresAt: 'number',
  tokenLifetimeMs: 'number',
  scope: 'string',
  endsAt: 'number',
  loginKey: 'string',
} as const satisfies Partial<Record<keyof SessionRecord, 'string' | 'number'>>

/** Undefined when another version wrote it. */
function parseRecord(text: string): SessionRecord | undefined {
  let record: unknown
  try {
    record = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof record !== 'object' || record === null) return undefined
  const fields = record as Record<string, unknown>
  const fits = Object.entries(SHAPE).every(([name, type]) => typeof fields[name] === type)
  return fits ? (record as SessionRecord) : undefined
}
