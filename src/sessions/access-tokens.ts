import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { audit } from '../telemetry/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { Requester } from '../http/requester.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { SessionReader } from './session-reader.ts'
import type { Session, SessionRepository } from './repository.ts'
import type { SessionRecord } from './session-record.ts'
import { refreshLockKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import type { GrantOutcome } from '../oauth/grant-outcome.ts'
import { PROVIDER_TIMEOUT_MS, type Provider } from '../oauth/provider.ts'
import { RenewalPauses } from './renewal-pauses.ts'
import { recordOf, renewAt } from './token-record.ts'

/** How long saving a refreshed token is retried: if it were lost, the session would be lost with it. */
const SAVE_MS = 5000
/** The lock outlives the slowest refresh and its saving, and expires if its owner dies. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + SAVE_MS + 1000
const POLL_MS = 50
/** The poll interval grows up to this, so that waiting for a slow provider does not load the store. */
const MAX_POLL_MS = 1000
/** How long a caller waits for a renewal, by the state of its old token. The renewal continues after that. */
const PATIENCE_MS = { valid: 2000, expired: 5000 }
/** When a caller that has waited in vain should try again. */
const RETRY_MS = 1000

/** A session whose access token can be used, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  /** The caller may try again after `retryAfterMs`. */
  | { readonly is: 'providerDown'; readonly cause: unknown; readonly retryAfterMs: number }

interface Renewal {
  /** Epoch ms. */
  readonly startedAt: number
  readonly result: Promise<TokenLookup>
}

interface Dependencies {
  readonly store: Store
  readonly sessions: SessionRepository
  readonly reader: SessionReader
  readonly provider: Provider
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

/** Keeps access tokens good: one refresh per expiry, no matter how many requests, processes and instances need it. */
export class AccessTokens {
  readonly #deps: Dependencies
  /** Running in this process, by the sealed text of the session, so that each version of a session has its own. */
  readonly #renewals = new Map<string, Renewal>()
  readonly #pauses = new RenewalPauses()
  /** Why the last refresh failed; logged for every refresh that is skipped because of it. */
  #lastCause: unknown

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether the token can be used as it is. This is the only check on the hot path. */
  isGood({ record }: Session): boolean {
    return record.refreshToken === undefined || Date.now() < renewAt(record)
  }

  /** Renews a session's token. While the old token is valid, it is used if the renewal fails. @throws StoreUnavailable */
  async renewed(session: Session): Promise<TokenLookup> {
    const isValid = () => Date.now() < session.record.tokenExpiresAt
    try {
      const result = await this.#renewOnce(session, isValid() ? PATIENCE_MS.valid : PATIENCE_MS.expired)
      return result.is === 'providerDown' && isValid() ? { is: 'good', session } : result
    } catch (error) {
      if (error instanceof StoreUnavailable && isValid()) return { is: 'good', session }
      throw error
    }
  }

  /**
   * Finds a replacement after upstream refused the token of `session`: the current token or a renewed one. Without either,
   * the session ends.
   * @param mayRenew false if a renewed token was refused too
   * @param requester of the refused call
   */
  async afterRefusal(session: Session, mayRenew: boolean, requester?: Requester): Promise<TokenLookup> {
    const { reader, sessions } = this.#deps
    const found = await reader.reload(session.id)
    if (found.is === 'storeDown') throw found.cause
    if (found.is === 'none') return { is: 'ended' }
    if (found.session.record.accessToken !== session.record.accessToken) {
      return { is: 'good', session: found.session }
    }
    if (mayRenew && session.record.refreshToken !== undefined) {
      return this.#renewOnce(session, PATIENCE_MS.expired)
    }
    await sessions.end(session.key, 'refused', { requester, subjectTag: session.subjectTag })
    return { is: 'ended' }
  }

  /** Joins a session's running renewal, or starts one unless it is paused. `patienceMs` counts from the renewal's start. */
  async #renewOnce(session: Session, patienceMs: number): Promise<TokenLookup> {
    const running = this.#renewals.get(session.sealed)
    if (running === undefined) {
      const retryAfterMs = this.#retryAfterMs(session.key)
      if (retryAfterMs > 0) return this.#refreshSkipped(retryAfterMs)
    }
    const { startedAt, result } = running ?? this.#start(session)
    const inTime = await settledBefore(result, startedAt + patienceMs)
    if (inTime !== undefined) return inTime
    const cause = new Error('the token renewal is taking too long')
    return { is: 'providerDown', cause, retryAfterMs: RETRY_MS }
  }

  #start(session: Session): Renewal {
    const result = this.#renew(session).finally(() => this.#renewals.delete(session.sealed))
    const renewal = { startedAt: Date.now(), result }
    this.#renewals.set(session.sealed, renewal)
    return renewal
  }

  /** Milliseconds until the session may be renewed after a recent failure; 0 if it may be renewed now. */
  #retryAfterMs(key: string): number {
    const { provider, metrics } = this.#deps
    const ofSession = this.#pauses.remainingMs(key, provider.workedAt)
    const ofProvider = provider.refreshAfterMs
    if (ofSession === 0 && ofProvider === 0) return 0
    metrics.provider.refreshSkipped(ofProvider > 0 ? 'provider' : 'session')
    return Math.max(ofSession, ofProvider)
  }

  /** Refreshes and saves the token under a lock that all instances share, or waits for the owner of the lock to do so. */
  async #renew(session: Session): Promise<TokenLookup> {
    const { store, sessions } = this.#deps
    const lock = refreshLockKey(session.key)
    const owner = randomUUID()
    // Longer than a lock can last: if its owner died, this process takes the lock once it has expired.
    const giveUpAt = Date.now() + LOCK_MS + 1000
    for (let pollMs = POLL_MS; Date.now() < giveUpAt; pollMs = Math.min(2 * pollMs, MAX_POLL_MS)) {
      const hasLock = await store.lock(lock, owner, Date.now() + LOCK_MS)
      try {
        // Read again under the lock: another instance may have renewed the token, or the session may have ended.
        const current = await sessions.load(session.id)
        if (current === undefined) return { is: 'ended' }
        if (current.record.accessToken !== session.record.accessToken) return { is: 'good', session: current }
        if (hasLock) return await this.#refresh(current)
      } finally {
        if (hasLock) await store.removeIf(lock, owner).catch(() => undefined)
      }
      await delay(pollMs)
    }
    const cause = new Error('another process holds the refresh lock')
    return { is: 'providerDown', cause, retryAfterMs: RETRY_MS }
  }

  async #refresh(session: Session): Promise<TokenLookup> {
    const { provider, metrics, log } = this.#deps
    const { record, key } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const outcome = await provider.refresh(record.refreshToken)
    if (outcome.is === 'skipped') {
      metrics.provider.refreshSkipped('provider')
      return this.#refreshSkipped(outcome.retryAfterMs)
    }
    metrics.refreshes.inc({ outcome: outcome.is === 'refused' ? outcome.code : outcome.is })
    if (outcome.is === 'granted') {
      this.#pauses.end(key)
      audit(log, 'token_refreshed', { session: session.tag, subject: session.subjectTag })
      if (outcome.grant.lifetimeGuessed) logFailure(log, 'the provider named no usable expires_in')
      // A provider that does not rotate refresh tokens returns none; the old one stays valid.
      const grant = { refreshToken: record.refreshToken, ...outcome.grant }
      return this.#save(session, recordOf(grant, record))
    }
    if (outcome.is === 'refused' && outcome.code === 'invalid_grant') {
      audit(log, 'refresh_refused', { session: session.tag, subject: session.subjectTag, cause: outcome.cause })
      return this.#endRefused(session)
    }
    return this.#failure(key, outcome)
  }

  #refreshSkipped(retryAfterMs: number): TokenLookup {
    return { is: 'providerDown', cause: this.#lastCause, retryAfterMs }
  }

  #failure(key: string, outcome: Exclude<GrantOutcome, { is: 'granted' }>): TokenLookup {
    const { code, cause } = outcome
    this.#lastCause = cause
    const pauseMs = this.#pauses.begin(key, code !== 'login_failed')
    const retryAfterMs = Math.max(pauseMs, this.#deps.provider.refreshAfterMs)
    const what = outcome.is === 'refused' ? 'refused a refresh' : 'was unavailable for a refresh'
    // The token endpoint itself rejects this client's registration, which only the operator can correct.
    const level = code === 'invalid_client' ? 'error' : 'warn'
    logFailure(this.#deps.log, `the provider ${what}`, { code }, cause, level)
    return { is: 'providerDown', cause, retryAfterMs }
  }

  /** Saves new tokens before their first use. If the session has ended meanwhile, it stays ended and they are revoked. */
  async #save(session: Session, record: SessionRecord): Promise<TokenLookup> {
    const saved = await this.#replace(session, record)
    if (saved !== undefined) return { is: 'good', session: saved }
    const current = await this.#deps.sessions.load(session.id)
    // A session that continues must not lose its tokens: revoking these could revoke the whole grant.
    if (current !== undefined) return { is: 'good', session: current }
    this.revoke(record)
    return { is: 'ended' }
  }

  /** Retries during a short outage: the old refresh token is used up, and `record` is the only copy of the new one. */
  async #replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const giveUpAt = Date.now() + SAVE_MS
    for (;;) {
      try {
        return await this.#deps.sessions.replace(session, record)
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || Date.now() >= giveUpAt) throw error
        await delay(POLL_MS)
      }
    }
  }

  async #endRefused(session: Session): Promise<TokenLookup> {
    const { sessions } = this.#deps
    // Read again: if this process stalled until its lock expired, another may have rotated the token meanwhile. Only a
    // refusal of the current token ends the session.
    const current = await sessions.load(session.id)
    if (current !== undefined && current.record.accessToken !== session.record.accessToken) {
      return { is: 'good', session: current }
    }
    await sessions.end(session.key, 'refused', { subjectTag: session.subjectTag })
    return { is: 'ended' }
  }

  /** Revokes the tokens of a session in the background. */
  revoke(record: Pick<SessionRecord, 'accessToken' | 'refreshToken'>): void {
    const { provider, log } = this.#deps
    const tokens = [record.refreshToken, record.accessToken].filter((token) => token !== undefined)
    void Promise.all(tokens.map((token) => provider.revoke(token))).then((done) => {
      if (done.includes(false)) logFailure(log, 'a token could not be revoked')
    })
  }
}

/** The result of a promise, or undefined if it is still pending at `deadline` (epoch ms). */
async function settledBefore<Value>(promise: Promise<Value>, deadline: number): Promise<Value | undefined> {
  const timer = new AbortController()
  const timeout = delay(Math.max(0, deadline - Date.now()), undefined, { signal: timer.signal })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    timer.abort()
  }
}
