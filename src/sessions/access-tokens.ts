import type { Requester } from '../http/requester.ts'
import { waiting } from '../telemetry/traces/span.ts'
import { within } from '../time/within.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { SessionRepository } from './repository.ts'
import type { SessionReader } from './session-reader.ts'
import { renewAt, type Session } from './session.ts'
import { RETRY_MS, type TokenLookup, type TokenRenewal } from './token-renewal.ts'
import { storeNow } from '../time/store-time.ts'

/** How long a caller waits for a renewal, by the state of its old token. The renewal continues after that. */
const PATIENCE_MS = { valid: 2000, expired: 5000 }
/** A token that is valid for this long outlives the patience of a caller who would wait for another one. */
const AHEAD_MS = 3000

/** A renewal that runs in this process. */
interface Running {
  /** Epoch ms. */
  readonly startedAt: number
  readonly result: Promise<TokenLookup>
}

/**
 * Keeps access tokens good: one refresh per expiry, no matter how many requests need it. Those of this process share one
 * renewal, and wait for it no longer than they can.
 */
export class AccessTokens {
  readonly #sessions: SessionRepository
  readonly #reader: SessionReader
  readonly #renewal: TokenRenewal
  /** Running in this process, by the sealed text of the session, so that each version of a session has its own. */
  readonly #running = new Map<string, Running>()

  constructor(sessions: SessionRepository, reader: SessionReader, renewal: TokenRenewal) {
    this.#sessions = sessions
    this.#reader = reader
    this.#renewal = renewal
  }

  /**
   * Whether the token can be used as it is. One that cannot be renewed always can, since its session ends with it. This is the only
   * check on the hot path.
   */
  isGood({ record }: Session): boolean {
    return record.refreshToken === undefined || storeNow() < renewAt(record)
  }

  /** Starts to renew a token that is due, unless it ends too soon. @returns whether the old one can be used meanwhile */
  renewAhead(session: Session): boolean {
    if (session.record.tokenExpiresAt - storeNow() < AHEAD_MS) return false
    if (!this.#running.has(session.sealed) && this.#renewal.paused(session.key) === undefined) {
      this.#start(session).result.catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
    }
    return true
  }

  /** Renews a session's token. While the old token is valid, it is used if the renewal fails. @throws StoreUnavailable */
  async renewed(session: Session): Promise<TokenLookup> {
    const isValid = () => storeNow() < session.record.tokenExpiresAt
    try {
      const result = await this.#renewOnce(session, isValid() ? PATIENCE_MS.valid : PATIENCE_MS.expired)
      return result.is === 'providerDown' && isValid() ? { is: 'good', session } : result
    } catch (error) {
      if (error instanceof StoreUnavailable && isValid()) return { is: 'good', session }
      throw error
    }
  }

  /**
   * Finds a replacement for a refused token, as Sessions.renewAfterRefusal() says: the token that another call has renewed
   * meanwhile, else a new one. Where there is none, the session ends. @throws StoreUnavailable
   */
  async afterRefusal(session: Session, mayRenew: boolean, requester?: Requester): Promise<TokenLookup> {
    const found = await this.#reader.reload(session.id)
    if (found.is === 'storeDown') throw found.cause
    if (found.is === 'none') return { is: 'ended' }
    if (found.session.record.accessToken !== session.record.accessToken) {
      return { is: 'good', session: found.session }
    }
    if (mayRenew && session.record.refreshToken !== undefined) {
      // The session as it is now: another instance may have been issued the refused token once more.
      return this.#renewOnce(found.session, PATIENCE_MS.expired)
    }
    await this.#sessions.end(session.key, 'refused', { requester, subjectTag: session.subjectTag })
    return { is: 'ended' }
  }

  /** Joins a session's running renewal, or starts one unless it is paused. `patienceMs` counts from the renewal's start. */
  async #renewOnce(session: Session, patienceMs: number): Promise<TokenLookup> {
    const running = this.#running.get(session.sealed)
    const paused = running === undefined ? this.#renewal.paused(session.key) : undefined
    if (paused !== undefined) return paused
    const { startedAt, result } = running ?? this.#start(session)
    const patience = Math.max(0, startedAt + patienceMs - Date.now())
    const inTime = await waiting('wait for a token renewal', within(patience, result))
    if (inTime !== undefined) return inTime
    const cause = new Error('the token renewal is taking too long')
    return { is: 'providerDown', cause, retryAfterMs: RETRY_MS }
  }

  #start(session: Session): Running {
    const result = this.#renewal.renew(session).finally(() => this.#running.delete(session.sealed))
    const started = { startedAt: Date.now(), result }
    this.#running.set(session.sealed, started)
    return started
  }
}
