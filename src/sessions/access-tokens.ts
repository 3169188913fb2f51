import type { Requester } from '../http/requester.ts'
import { waiting } from '../telemetry/traces/span.ts'
import { within } from '../time/within.ts'
import { StoreUnavailable, unlessAway } from '../store/store.ts'
import type { SessionRepository } from './repository.ts'
import type { SessionReader } from './session-reader.ts'
import type { Session, SessionRecord } from './session.ts'
import { RETRY_MS, type Client, type RenewalCause, type TokenLookup, type TokenRenewal } from './token-renewal.ts'
import { storeNow } from '../time/store-time.ts'

/** A token is renewed this long before it expires at most. */
const MAX_MARGIN_MS = 60_000
/** How long a caller waits for a renewal, by the state of its old token. The renewal continues after that. */
const PATIENCE_MS = { valid: 1000, expired: 5000 }
/** A token that is valid for this long outlives the patience of a caller who would wait for another one. */
const AHEAD_MS = 3000

/** A renewal that runs in this process. */
interface Running {
  /** Ms of the monotonic clock. */
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
   * Whether the token can be used as it is. A token without a refresh token always can, since its session ends with it. This is the only
   * check on the hot path.
   */
  isGood({ record }: Session): boolean {
    return record.refreshToken === undefined || storeNow() < renewAt(record)
  }

  /** Starts to renew a token that is due, unless it ends too soon. @returns whether the old one can be used meanwhile */
  renewAhead(session: Session, client?: Client): boolean {
    if (session.record.tokenExpiresAt - storeNow() < AHEAD_MS) return false
    if (!this.#running.has(session.sealed) && this.#renewal.paused(session, { client }) === undefined) {
      void unlessAway(this.#start(session, { client }).result)
    }
    return true
  }

  /** Renews a session's token. While the old token is valid, it is used if the renewal fails. @throws StoreUnavailable */
  async renewed(session: Session, client?: Client): Promise<TokenLookup> {
    const isValid = () => storeNow() < session.record.tokenExpiresAt
    try {
      if (isValid()) {
        const result = await this.#renewOnce(session, PATIENCE_MS.valid, { client })
        if (result.is !== 'providerDown') return result
        if (isValid()) return { is: 'good', session }
      }
      // The token has expired, perhaps meanwhile.
      return await this.#renewOnce(session, PATIENCE_MS.expired, { client })
    } catch (error) {
      if (error instanceof StoreUnavailable && isValid()) return { is: 'good', session }
      throw error
    }
  }

  /**
   * Finds a replacement for a refused token, as Sessions.renewAfterRefusal() says: the token that another call has renewed
   * meanwhile, else a new one, unless another refused token was renewed a moment ago. Where there is none, the session ends.
   * @throws StoreUnavailable
   */
  async afterRefusal(session: Session, mayRenew: boolean, requester?: Requester): Promise<TokenLookup> {
    const { renewed } = this.#renewal
    const isRenewable = session.record.refreshToken !== undefined
    // Before the session is read: the mark is written after the new token, so whoever sees the mark reads that token.
    const recent = isRenewable ? await renewed.recent(session.key) : undefined
    // With a mark the session is read anew: joining a reading that began before the mark could bring the old token.
    const current =
      recent === undefined ? await this.#reader.near.load(session.id) : await this.#sessions.load(session.id)
    if (current === undefined) return { is: 'ended' }
    if (current.record.accessToken !== session.record.accessToken) return { is: 'good', session: current }
    if (recent !== undefined && (recent.isAccepted || renewed.isAccepted(current))) {
      return { is: 'justRenewed', retryAfterMs: recent.retryAfterMs }
    }
    if (isRenewable && mayRenew && recent === undefined) {
      // The session as it is now: another instance may have been issued the refused token once more.
      const cause = { client: requester && { ip: requester.client }, isAfterRefusal: true }
      return this.#renewOnce(current, PATIENCE_MS.expired, cause)
    }
    await this.#sessions.end(session.key, 'refused', { requester, subjectTag: session.subjectTag })
    return { is: 'ended' }
  }

  /** Resolves once all new tokens are saved: they would be lost with this process, and the old ones are used up. Never rejects. */
  async close(): Promise<void> {
    this.#renewal.isEnding = true
    await Promise.allSettled(Array.from(this.#running.values(), ({ result }) => result))
    await this.#renewal.pending.written()
  }

  /** Joins a session's running renewal, or starts one unless it is paused. `patienceMs` counts from the renewal's start. */
  async #renewOnce(session: Session, patienceMs: number, cause: RenewalCause): Promise<TokenLookup> {
    const running = this.#running.get(session.sealed)
    const paused = running === undefined ? this.#renewal.paused(session, cause) : undefined
    if (paused !== undefined) return paused
    const { startedAt, result } = running ?? this.#start(session, cause)
    const patience = Math.max(0, startedAt + patienceMs - performance.now())
    const inTime = await waiting('wait for a token renewal', within(patience, result))
    if (inTime !== undefined) return inTime
    const isLate = new Error('the token renewal is taking too long')
    return { is: 'providerDown', cause: isLate, retryAfterMs: RETRY_MS }
  }

  #start(session: Session, cause: RenewalCause): Running {
    const result = this.#renewal.renew(session, cause).finally(() => this.#running.delete(session.sealed))
    const started = { startedAt: performance.now(), result }
    this.#running.set(session.sealed, started)
    return started
  }
}

/** When to renew a token: a little before it expires (epoch ms). */
function renewAt(record: SessionRecord): number {
  return record.tokenExpiresAt - Math.min(MAX_MARGIN_MS, record.tokenLifetimeMs / 10)
}
