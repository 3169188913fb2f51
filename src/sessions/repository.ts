import type { Requester } from '../http/requester.ts'
import { logTag } from '../telemetry/log-tag.ts'
import type { Envelope } from './envelope.ts'
import { expiryMarkerKey, sessionKey, tombstoneKey } from '../store/keys.ts'
import type { Store, StoredValue } from '../store/store.ts'

/** Idle limits are moved at most this often for a session. */
const MAX_STEP_MS = 60_000
const CLOCK_SKEW_MS = 200
/** All who notice the end of a session do so within this time. */
const EXPIRY_MARKER_MS = 60_000
/** Longer than anybody holds a session without having re-read it. */
const TOMBSTONE_MS = 300_000

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

/**
 * Why a session ended, where that was caused. `expired`: its absolute limit; `idle`: unused for too long; `gone`: found
 * missing in the store.
 */
export type EndReason = 'logout' | 'replaced' | 'expired' | 'idle' | 'refused' | 'gone'

/** The endings that somebody causes, and that leave a tombstone. */
export type CausedEnd = Extract<EndReason, 'logout' | 'replaced' | 'refused'>
const CAUSED_ENDS: ReadonlySet<string> = new Set<CausedEnd>(['logout', 'replaced', 'refused'])

/**
 * Hears of an ending that this process caused or found.
 * @param wasThere false when there was nothing left to end
 * @param by who asked for what ended it; undefined where nobody did, as at its own limits
 */
export type EndListener = (
  key: string,
  reason: EndReason,
  wasThere: boolean,
  by: Requester | undefined,
) => void

/** How long a session lives (ms). */
export interface SessionLimits {
  readonly idleMs: number
  readonly maxMs: number
}

/** Sessions as the store holds them: sealed, found by the hash of their id, and never brought back once ended. */
export class SessionRepository {
  readonly limits: SessionLimits
  /** Idle limits move in steps of this length. */
  readonly #stepMs: number
  readonly #store: Store
  readonly #envelope: Envelope
  readonly #tagSecret: string
  readonly #endListeners: EndListener[] = []
  readonly #unreplicatedListeners: ((key: string) => void)[] = []

  /** @param tagSecret keys the hash that stands for a session in the log */
  constructor(store: Store, envelope: Envelope, limits: SessionLimits, tagSecret: string) {
    this.#store = store
    this.#envelope = envelope
    this.limits = limits
    this.#stepMs = Math.max(1, Math.min(MAX_STEP_MS, Math.floor(limits.idleMs / 10)))
    this.#tagSecret = tagSecret
  }

  /** The short name of a session in the log: it leads back neither to the id nor to the store's key. */
  tag(key: string): string {
    return logTag(this.#tagSecret, key)
  }

  /** @throws StoreUnavailable; Error when the id exists already, which 256 random bits rule out */
  async create(id: string, record: SessionRecord): Promise<void> {
    const key = sessionKey(id)
    // To the moment: its first use brings it into step.
    const idleEndsAt = Math.min(record.endsAt, Date.now() + this.limits.idleMs)
    const created = await this.#store.create(key, this.#seal(key, id, record), idleEndsAt)
    if (!created) throw new Error('a session of this id exists already')
  }

  /** Undefined when there is none, or when it cannot be read here: another instance may still understand it. */
  async load(id: string): Promise<Session | undefined> {
    const key = sessionKey(id)
    return this.#open(id, key, await this.#store.read(key))
  }

  /**
   * Reads a session as {@link load} does, and counts as use: in the same step it moves the idle limit, if that is due.
   * @param endsAt the session's absolute limit, which never changes
   */
  async touch(id: string, endsAt: number): Promise<Session | undefined> {
    const key = sessionKey(id)
    return this.#open(id, key, await this.#store.extend(key, this.#idleEnd(endsAt)))
  }

  /** Whether a use now is to move the idle limit of a session with these limits. */
  isDue(idleEndsAt: number, endsAt: number, now = Date.now()): boolean {
    return idleEndsAt < endsAt && idleEndsAt < now + this.limits.idleMs
  }

  /** Compare-and-set. Undefined when the session was changed or ended meanwhile: read it again. */
  async replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const { id, key, tag } = session
    const sealed = this.#seal(key, id, record)
    const idleEndsAt = this.#idleEnd(record.endsAt)
    return (await this.#store.replace(key, session.sealed, sealed, idleEndsAt))
      ? { id, key, tag, record, idleEndsAt, sealed }
      : undefined
  }

  /**
   * Ends a session everywhere. True when it was still there. Where Redis has replicas it waits briefly for one, so
   * that a failover does not bring the session back.
   * @param by for the log: see {@link EndListener}
   */
  async end(key: string, reason: CausedEnd, by?: Requester): Promise<boolean> {
    const wasThere = (await this.#bury(key, reason, by)) !== undefined
    // Also of one that was gone already: who ended it may not have waited.
    await this.#replicate(key)
    return wasThere
  }

  /**
   * The same, by the id. Returns what the session held in the very end, which a refresh may just have changed;
   * undefined when it was gone, or cannot be read here.
   * @param isProven false for an id that may be made up: nobody waits for a replica on account of one that leads nowhere
   */
  async endById(
    id: string,
    reason: CausedEnd,
    isProven: boolean,
    by?: Requester,
  ): Promise<SessionRecord | undefined> {
    const key = sessionKey(id)
    const sealed = await this.#bury(key, reason, by)
    if (isProven || sealed !== undefined) await this.#replicate(key)
    return sealed === undefined ? undefined : this.#record(id, key, sealed)
  }

  /** Why a session that is no longer there has ended, as far as anybody can tell. @throws StoreUnavailable */
  async reasonOf(session: Session): Promise<EndReason> {
    const own = expiryOf(session)
    if (own !== undefined) return own
    const tombstone = await this.#store.readUntracked(tombstoneKey(session.key))
    return tombstone !== undefined && isCausedEnd(tombstone.value) ? tombstone.value : 'gone'
  }

  /**
   * To be called by whoever knew a session that is no longer there. If it was over by its own limits its end is
   * recorded, once among all instances that notice. Never rejects.
   */
  async recordExpiry(session: Session): Promise<void> {
    const reason = expiryOf(session)
    if (reason === undefined) return
    const mark = this.#store.create(expiryMarkerKey(session.key), '', Date.now() + EXPIRY_MARKER_MS)
    if (await mark.catch(() => false)) this.#notify(session.key, reason, true)
  }

  /** Hears of every ending that no replica confirmed: a failover right now could bring the session back. */
  onUnreplicatedEnd(listener: (key: string) => void): void {
    this.#unreplicatedListeners.push(listener)
  }

  onEnd(listener: EndListener): void {
    this.#endListeners.push(listener)
  }

  /** Returns what the session held. */
  async #bury(key: string, reason: CausedEnd, by: Requester | undefined): Promise<string | undefined> {
    const expiresAt = Date.now() + TOMBSTONE_MS
    const held = await this.#store.bury(key, { key: tombstoneKey(key), value: reason, expiresAt })
    this.#notify(key, reason, held !== undefined, by)
    return held
  }

  async #replicate(key: string): Promise<void> {
    if ((await this.#store.isReplicated(key)) !== false) return
    for (const listener of this.#unreplicatedListeners) listener(key)
  }

  #notify(key: string, reason: EndReason, wasThere: boolean, by?: Requester): void {
    for (const listener of this.#endListeners) listener(key, reason, wasThere, by)
  }

  #seal(key: string, id: string, record: SessionRecord): string {
    return this.#envelope.seal(key, id, JSON.stringify(record))
  }

  #open(id: string, key: string, stored: StoredValue | undefined): Session | undefined {
    const record = stored && this.#record(id, key, stored.value)
    if (stored === undefined || record === undefined) return undefined
    return { id, key, tag: this.tag(key), record, idleEndsAt: stored.expiresAt, sealed: stored.value }
  }

  #record(id: string, key: string, sealed: string): SessionRecord | undefined {
    const opened = this.#envelope.open(key, id, sealed)
    return opened === undefined ? undefined : parseRecord(opened)
  }

  /**
   * When a session that is used now ends if it is not used again: rounded up to a whole number of steps before its
   * absolute limit. So all instances want the same limit for a whole step, and only the first has anything to write;
   * nobody is logged out early; and sessions do not all fall due at the same moment.
   */
  #idleEnd(endsAt: number): number {
    const spare = endsAt - (Date.now() + this.limits.idleMs)
    return spare <= 0 ? endsAt : endsAt - Math.floor(spare / this.#stepMs) * this.#stepMs
  }
}

/** Which of its own limits a session is past, if any. Early by a moment, since the store's clock may be ahead. */
export function expiryOf({ idleEndsAt, record }: Session): 'expired' | 'idle' | undefined {
  const now = Date.now() + CLOCK_SKEW_MS
  if (now >= record.endsAt) return 'expired'
  return now >= idleEndsAt ? 'idle' : undefined
}

function isCausedEnd(text: string): text is CausedEnd {
  return CAUSED_ENDS.has(text)
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
