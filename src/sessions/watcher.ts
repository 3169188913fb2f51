import type { StoreData } from '../store/store.ts'
import { eachOf, tell } from './each-of.ts'
import { MAX_UNREAD_MS } from './near-cache.ts'
import type { SessionReader } from './session-reader.ts'
import type { EndReason } from './endings.ts'
import type { SessionRepository } from './repository.ts'
import type { Session } from './session.ts'
import type { Client, TokenLookup } from './token-renewal.ts'
import { untraced } from '../telemetry/traces/span.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'

/** Why a watch fired. `storeLost`: for too long, the store could not be asked whether the session is still live. */
type WatchEnd = EndReason | 'storeLost'

/** A socket, or another part of this process, that watches a session. */
export interface Watch {
  /**
   * Whether a trading socket has it: then it counts as use of the session where RELAYS_KEEP_SESSION is on, the token is renewed without a
   * call, and in a Cluster the session is read again every 0.8 s.
   */
  readonly isUse: boolean
  /** Who opened it. */
  readonly client?: Client
  /** Called when this process notices that the limits or the scope of the session have changed. */
  readonly onChange?: (session: Session) => void
  /** Called once, when the session has ended. */
  readonly onEnd: (reason: WatchEnd) => void
}

interface Watched {
  session: Session
  /** When it was live for the last time, as far as this process knows (ms of the clock of {@link standstill}). */
  seenAt: number
  readonly watches: Set<Watch>
  /** How many of the watches count as use. */
  uses: number
  /** When its token may be renewed without a call, once it has expired (ms of the clock of {@link standstill}). */
  renewFrom: number
  /** Runs the next check, or, if the session has ended, the delayed notification. */
  timer?: NodeJS.Timeout
  /** Where the session has ended: resolves once the watches have been told. */
  told?: Promise<void>
  /** Since when the session could not be read (ms of the clock of {@link standstill}). */
  unreadSince?: number
}

interface WatcherOptions {
  readonly storeGraceMs: number
  /** Whether being watched counts as use of a session. */
  readonly keepAlive: boolean
  /** Renews the token of a session. Absent where nobody needs the tokens. */
  readonly renew?: (session: Session, client: Client | undefined) => Promise<TokenLookup>
}

const RETRY_MS = 1000
/**
 * Delays the notification that a new login has replaced a session. The page reacts by asking for its session, and by
 * then the browser should have the new cookie.
 */
const REPLACED_MS = 1000
/** How often a session is checked that is watched but not used, in case the notification of its end was lost. */
const LISTENING_RECHECK_MS = 10_000
/** The longest delay of a Node timer that does not overflow. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Notifies listeners when a session ends, whichever instance ended it. A change that the store reports is only a hint:
 * the watcher reads the session again, which both decides and makes Redis track the key again.
 */
export class SessionWatcher {
  readonly #watched = new Map<string, Watched>()
  readonly #sessions: SessionRepository
  readonly #reader: SessionReader
  readonly #store: StoreData
  readonly #options: WatcherOptions
  /** The longest time between two checks of a session whose end the store may not report. */
  readonly #recheckMs: number

  constructor(sessions: SessionRepository, reader: SessionReader, store: StoreData, options: WatcherOptions) {
    this.#sessions = sessions
    this.#reader = reader
    this.#store = store
    this.#options = options
    this.#recheckMs = Math.min(store.staleMs, MAX_UNREAD_MS) * 0.8
    sessions.endings.onEnd(({ key, reason }) => this.#end(key, reason))
    // A request may have moved the limits of a watched session.
    reader.near.onRead((session) => this.#update(this.#watched.get(session.key), session))
    store.onChange((key) => {
      if (key !== undefined) void this.#check(key)
      else void eachOf([...this.#watched.keys()], (each) => this.#check(each))
    })
  }

  /** Watches a live session. Returns a function that stops the watch; calling it twice is harmless. */
  watch(session: Session, watch: Watch): () => void {
    const watched = this.#watched.get(session.key) ?? {
      session,
      seenAt: standstill.now(),
      watches: new Set(),
      uses: 0,
      renewFrom: 0,
    }
    this.#watched.set(session.key, watched)
    watched.watches.add(watch)
    if (watch.isUse) watched.uses++
    else this.#store.watchBurials()
    // The session may have ended after the caller read it and before the watch began.
    void this.#check(session.key)
    return () => {
      if (watched.watches.delete(watch) && watch.isUse) watched.uses--
      if (watched.watches.size > 0 || this.#watched.get(session.key) !== watched) return
      clearTimeout(watched.timer)
      this.#watched.delete(session.key)
    }
  }

  /**
   * Asks the store whether a watched session is live. If not, its watches are told before this resolves. Never rejects.
   * @returns false if the store could not be asked
   */
  async confirm({ key }: Pick<Session, 'key'>): Promise<boolean> {
    const watched = this.#watched.get(key)
    const isAsked = await this.#check(key)
    await watched?.told
    return isAsked
  }

  /** Never rejects, because nothing would handle the rejection. @returns false if the store could not be asked */
  async #check(key: string): Promise<boolean> {
    const watched = this.#watched.get(key)
    if (watched === undefined || watched.told !== undefined) return true
    const reading = this.#reader.recheck(watched.session, this.#isUsed(watched))
    const found = await reading.catch(() => ({ is: 'unknown' }) as const)
    // If the session has ended meanwhile, its timer is that of the notification, which nothing may replace.
    if (!this.#isLive(key, watched)) return true
    switch (found.is) {
      case 'live':
        delete watched.unreadSince
        watched.seenAt = standstill.lookedAt
        this.#update(watched, found.session)
        if (renewsInMs(watched) <= 0) this.#renew(watched)
        this.#schedule(watched)
        return true
      case 'none': {
        const { endings } = this.#sessions
        const { session, seenAt } = watched
        void endings.recordExpiry(session)
        void endings.recordLoss({ ...session, endsAt: session.record.endsAt, seenAt })
        this.#end(key, await endings.reasonOf(session))
        return true
      }
      case 'unknown':
      case 'storeDown':
        watched.unreadSince ??= standstill.now()
        if (standstill.now() - watched.unreadSince >= this.#options.storeGraceMs) this.#end(key, 'storeLost')
        // With jitter: otherwise, an instance with thousands of watches would overload a store that has just come back.
        else this.#checkIn(watched, RETRY_MS * (0.5 + Math.random() / 2))
        return false
    }
  }

  /** Whether a session is still watched, and live as far as this process knows. */
  #isLive(key: string, watched: Watched): boolean {
    return this.#watched.get(key) === watched && watched.told === undefined
  }

  /** Schedules the next check for when the session would end by its limits, or when its idle limit is to be moved. */
  #schedule(watched: Watched): void {
    const now = storeNow()
    const { idleEndsAt, record } = watched.session
    const untilEndMs = Math.min(record.endsAt, idleEndsAt) - now
    const isOnlyListening = watched.uses === 0 && this.#store.reportsBurials
    let pauseMs = Math.min(untilEndMs, isOnlyListening ? LISTENING_RECHECK_MS : this.#recheckMs)
    if (this.#options.renew !== undefined) pauseMs = Math.min(pauseMs, renewsInMs(watched))
    if (this.#isUsed(watched) && idleEndsAt < record.endsAt) {
      const { idleMs } = this.#sessions.limits
      const untilDueMs = idleEndsAt - idleMs - now
      // A limit that is overdue was read late or could not be moved. Retries then become rarer while time is left.
      const retryMs = Math.max(Math.min(RETRY_MS, idleMs / 20), Math.min(-untilDueMs, untilEndMs / 20))
      pauseMs = Math.min(pauseMs, untilDueMs < 0 ? retryMs : untilDueMs)
    }
    this.#checkIn(watched, Math.max(pauseMs, 0) + 1)
  }

  /**
   * Renews a token that has expired while its session has a trading socket: perhaps no call comes that would, and a session that the
   * provider refuses must not go on trading.
   */
  #renew(watched: Watched): void {
    const { renew } = this.#options
    const client = [...watched.watches].find(({ isUse }) => isUse)?.client
    // Until the result is known.
    watched.renewFrom = Infinity
    const again = (found?: TokenLookup): void => {
      const waitMs = found !== undefined && 'retryAfterMs' in found ? found.retryAfterMs : 0
      watched.renewFrom = standstill.now() + Math.max(waitMs, RETRY_MS)
      if (this.#isLive(watched.session.key, watched)) this.#schedule(watched)
    }
    void renew?.(watched.session, client).then(again, () => again())
  }

  #isUsed({ uses }: Watched): boolean {
    return uses > 0 && this.#options.keepAlive
  }

  #update(watched: Watched | undefined, session: Session): void {
    if (watched === undefined) return
    const { session: before } = watched
    watched.session = session
    const isSame =
      before.idleEndsAt === session.idleEndsAt &&
      before.record.endsAt === session.record.endsAt &&
      before.record.scope === session.record.scope
    if (!isSame) for (const { onChange } of watched.watches) onChange?.(session)
  }

  #checkIn(watched: Watched, ms: number): void {
    clearTimeout(watched.timer)
    const check = (): void => void this.#check(watched.session.key)
    // The timer outlives the request that begins to watch.
    watched.timer = untraced(() => setTimeout(check, Math.min(ms, MAX_TIMER_MS)).unref())
  }

  #end(key: string, reason: WatchEnd): void {
    const watched = this.#watched.get(key)
    if (watched === undefined || watched.told !== undefined) return
    const told = Promise.withResolvers<void>()
    watched.told = told.promise
    clearTimeout(watched.timer)
    const notify = (): void => {
      this.#watched.delete(key)
      told.resolve()
      const ends = watched.watches.values().map(({ onEnd }) => onEnd)
      tell(ends, reason)
    }
    if (reason === 'replaced') watched.timer = setTimeout(notify, REPLACED_MS).unref()
    else notify()
  }
}

/** The time until the token of a watched session is to be renewed without a call (ms); Infinity if it need not be. */
function renewsInMs({ uses, renewFrom, session: { record } }: Watched): number {
  if (uses === 0 || record.refreshToken === undefined) return Infinity
  return Math.max(record.tokenExpiresAt - storeNow(), renewFrom - standstill.now())
}
