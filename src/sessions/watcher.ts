import type { Store } from '../store/store.ts'
import { MAX_UNREAD_MS } from './near-cache.ts'
import type { SessionLookup, SessionReader } from './session-reader.ts'
import type { EndReason, Session, SessionRepository } from './repository.ts'

/** Why a watch fired. `storeLost`: for too long nobody could tell whether the session still lives. */
export type WatchEnd = EndReason | 'storeLost'

/** Told once, when the session that is watched has ended. */
export type WatchListener = (reason: WatchEnd) => void

interface Watched {
  session: Session
  readonly listeners: Set<WatchListener>
  /** Until it is re-read, or, once it has ended, until that is told. */
  timer?: NodeJS.Timeout
  hasEnded?: true
  /** Since when the session could not be re-read (epoch ms). */
  unreadSince?: number
}

const RETRY_MS = 1000
/**
 * The end of a session that a new login took the place of is told so much later. Its page asks at once who is logged in,
 * and by then the browser should have the new cookie.
 */
const REPLACED_MS = 1000
/** So many sessions are re-read at a time when any may have changed. */
const CHECKS_AT_ONCE = 64
/** The longest a Node timer can be set for without overflowing. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Hears that a session ended, wherever it was ended, for whoever holds something on its behalf. A change told by the
 * store is only a hint: the session is read again, and that decides (and has the server track the key again).
 */
export class SessionWatcher {
  readonly #watched = new Map<string, Watched>()
  readonly #sessions: SessionRepository
  readonly #reader: SessionReader
  readonly #storeGraceMs: number
  /** Watched sessions count as used. */
  readonly #keepAlive: boolean
  /** How often a session is re-read of whose changes the store does not tell. */
  readonly #rereadMs: number

  constructor(
    sessions: SessionRepository,
    reader: SessionReader,
    store: Store,
    options: { storeGraceMs: number; keepAlive: boolean },
  ) {
    this.#sessions = sessions
    this.#reader = reader
    this.#storeGraceMs = options.storeGraceMs
    this.#keepAlive = options.keepAlive
    this.#rereadMs = Math.min(store.staleMs, MAX_UNREAD_MS) * 0.8
    sessions.onEnd((key, reason) => this.#end(key, reason))
    store.onChange((key) => {
      if (key !== undefined) void this.#check(key)
      else void this.#checkAll()
    })
  }

  /** Holds a live session. Returns how to let go of it; letting go twice is harmless. */
  watch(session: Session, listener: WatchListener): () => void {
    const watched = this.#watched.get(session.key) ?? { session, listeners: new Set() }
    this.#watched.set(session.key, watched)
    watched.listeners.add(listener)
    // Read once more: it may have ended between the caller's reading and now.
    void this.#check(session.key)
    return () => {
      watched.listeners.delete(listener)
      if (watched.listeners.size > 0 || this.#watched.get(session.key) !== watched) return
      clearTimeout(watched.timer)
      this.#watched.delete(session.key)
    }
  }

  async #checkAll(): Promise<void> {
    const keys = [...this.#watched.keys()].values()
    const one = async (): Promise<void> => {
      for (const key of keys) await this.#check(key)
    }
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, one))
  }

  /** Never rejects: nobody would catch it. */
  async #recheck(session: Session): Promise<SessionLookup | { readonly is: 'unknown' }> {
    try {
      return await this.#reader.recheck(session, this.#keepAlive)
    } catch {
      return { is: 'unknown' }
    }
  }

  async #check(key: string): Promise<void> {
    const watched = this.#watched.get(key)
    if (watched === undefined || watched.hasEnded) return
    const found = await this.#recheck(watched.session)
    if (this.#watched.get(key) !== watched) return
    switch (found.is) {
      case 'live':
        delete watched.unreadSince
        watched.session = found.session
        return this.#schedule(watched)
      case 'none': {
        void this.#sessions.recordExpiry(watched.session)
        return this.#end(key, await this.#sessions.reasonOf(watched.session).catch(() => 'gone' as const))
      }
      case 'unknown':
      case 'storeDown':
        watched.unreadSince ??= Date.now()
        if (Date.now() - watched.unreadSince >= this.#storeGraceMs) return this.#end(key, 'storeLost')
        // Not all at once: whoever holds thousands would otherwise keep the store away when it has just come back.
        return this.#recheckIn(watched, RETRY_MS * (0.5 + Math.random() / 2))
    }
  }

  /** Looks again when the session would end by itself, or when its idle limit is to be moved. */
  #schedule(watched: Watched): void {
    const now = Date.now()
    const { idleEndsAt, record } = watched.session
    const untilEnd = Math.min(record.endsAt, idleEndsAt) - now
    let pause = Math.min(untilEnd, this.#rereadMs)
    if (this.#keepAlive && idleEndsAt < record.endsAt) {
      const { idleMs } = this.#sessions.limits
      const untilDue = idleEndsAt - idleMs - now
      // Due already: it took a while, or could not be moved, and then it is tried less and less often while time is left.
      const retryMs = Math.max(Math.min(RETRY_MS, idleMs / 20), Math.min(-untilDue, untilEnd / 20))
      pause = Math.min(pause, untilDue < 0 ? retryMs : untilDue)
    }
    this.#recheckIn(watched, Math.max(pause, 0) + 1)
  }

  #recheckIn(watched: Watched, ms: number): void {
    clearTimeout(watched.timer)
    watched.timer = setTimeout(() => void this.#check(watched.session.key), Math.min(ms, MAX_TIMER_MS))
    watched.timer.unref()
  }

  #end(key: string, reason: WatchEnd): void {
    const watched = this.#watched.get(key)
    if (watched === undefined || watched.hasEnded) return
    watched.hasEnded = true
    clearTimeout(watched.timer)
    const tell = (): void => {
      this.#watched.delete(key)
      for (const listener of watched.listeners) listener(reason)
    }
    if (reason === 'replaced') watched.timer = setTimeout(tell, REPLACED_MS).unref()
    else tell()
  }
}
