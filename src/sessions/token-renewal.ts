import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { backoffMs } from '../time/backoff.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { activeSpan } from '../telemetry/traces/span.ts'
import { refreshLockKey } from '../store/keys.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { StoreUnavailable, type StoreData, type StoreHealth } from '../store/store.ts'
import type { GrantOutcome } from '../oauth/grant-outcome.ts'
import type { Provider } from '../oauth/provider.ts'
import { PROVIDER_TIMEOUT_MS } from '../oauth/provider-traffic.ts'
import { RenewalPauses } from './renewal-pauses.ts'
import type { SessionRepository } from './repository.ts'
import { recordOf, type Session, type SessionRecord } from './session.ts'

/** How long saving a refreshed token is retried: if it were lost, the session would be lost with it. */
const SAVE_MS = 5000
/** The lock outlives the slowest refresh and its saving, and expires if its owner dies. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + SAVE_MS + 1000
const POLL_MS = 50
/** The poll interval grows up to this, so that waiting for a slow provider does not load the store. */
const MAX_POLL_MS = 1000
/** When a caller that has waited in vain should try again. */
export const RETRY_MS = 1000

/** A session whose access token can be used, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  /** The caller may try again after `retryAfterMs`. */
  | { readonly is: 'providerDown'; readonly cause: unknown; readonly retryAfterMs: number }

/** The tokens of a session, and its subject. */
export type OwnedTokens = Pick<SessionRecord, 'accessToken' | 'refreshToken' | 'subject'>

/** Dependencies of the renewal. */
export interface RenewalDependencies {
  readonly store: StoreData & StoreHealth
  readonly sessions: SessionRepository
  readonly provider: Provider
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

/** Renews the tokens of a session: once for all instances, and saved before they are used. */
export class TokenRenewal {
  readonly #deps: RenewalDependencies
  readonly #pauses = new RenewalPauses()
  /** Locks to release. */
  readonly #pending: PendingWrites
  /** Why the last refresh failed; logged for every refresh that is skipped because of it. */
  #lastCause: unknown

  constructor(deps: RenewalDependencies) {
    this.#deps = deps
    this.#pending = new PendingWrites(deps.store)
  }

  /** The result that replaces a renewal after a recent failure; undefined if the session may be renewed now. */
  paused(key: string): TokenLookup | undefined {
    const { provider, metrics } = this.#deps
    const ofSession = this.#pauses.remainingMs(key, provider.circuit.workedAt)
    const ofProvider = provider.circuit.retryAfterMs
    if (ofSession === 0 && ofProvider === 0) return undefined
    metrics.provider.refreshSkipped(ofProvider > 0 ? 'provider' : 'session')
    return this.#skipped(Math.max(ofSession, ofProvider))
  }

  /** Refreshes and saves the token under a lock that all instances share, or waits for the owner of the lock to do so. */
  async renew(session: Session): Promise<TokenLookup> {
    const waited = activeSpan().measure('wait for the refresh lock')
    try {
      return await this.#renewLocked(session, waited)
    } finally {
      // Another instance has had the lock all the time.
      waited()
    }
  }

  async #renewLocked(session: Session, onLocked: () => void): Promise<TokenLookup> {
    const { store, sessions } = this.#deps
    const lock = refreshLockKey(session.key)
    const owner = randomUUID()
    // Longer than a lock can last: if its owner died, this process takes the lock once it has expired.
    const giveUpAt = performance.now() + LOCK_MS + 1000
    let mayHaveLock = false
    try {
      for (let tries = 0; performance.now() < giveUpAt; tries++) {
        // Until the reply is here.
        mayHaveLock = true
        mayHaveLock = await store.lock(lock, owner, LOCK_MS)
        if (mayHaveLock) onLocked()
        // Read again under the lock: another instance may have renewed the token, or the session may have ended.
        const current = await sessions.load(session.id)
        if (current === undefined) return { is: 'ended' }
        // Not the access token: a provider may issue the same one again, for example a JWT of the same second.
        if (current.sealed !== session.sealed) return { is: 'good', session: current }
        if (mayHaveLock) return await this.#refresh(current)
        await delay(backoffMs(tries, { firstMs: POLL_MS, longestMs: MAX_POLL_MS }))
      }
    } finally {
      const release = (): Promise<boolean> => store.removeIf(lock, owner)
      // Without a reply it is released when the store is back, or nobody could renew the token until the lock expires.
      if (mayHaveLock) await release().catch(() => this.#pending.undo(release, Date.now() + LOCK_MS))
    }
    const cause = new Error('another process holds the refresh lock')
    return { is: 'providerDown', cause, retryAfterMs: RETRY_MS }
  }

  /** Revokes the tokens of a session in the background. @param tag of the session, for the log */
  revoke(tokens: OwnedTokens, tag?: string): void {
    const { provider, sessions, log } = this.#deps
    const subject = tokens.subject === undefined ? undefined : sessions.subjectTag(tokens.subject)
    void provider.revoke(tokens).then((failures) => {
      for (const { token, status, cause } of failures) {
        audit(log, 'revocation_failed', { session: tag, subject, token, status, cause })
      }
    })
  }

  async #refresh(session: Session): Promise<TokenLookup> {
    const { provider, metrics, log } = this.#deps
    const { record, key } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const outcome = await provider.refresh(record.refreshToken, record.oidc?.sub)
    if (outcome.is === 'skipped') {
      metrics.provider.refreshSkipped('provider')
      return this.#skipped(outcome.retryAfterMs)
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

  #skipped(retryAfterMs: number): TokenLookup {
    return { is: 'providerDown', cause: this.#lastCause, retryAfterMs }
  }

  #failure(key: string, outcome: Exclude<GrantOutcome, { is: 'granted' }>): TokenLookup {
    const { code, cause } = outcome
    this.#lastCause = cause
    const pauseMs = this.#pauses.begin(key, code !== 'login_failed')
    const retryAfterMs = Math.max(pauseMs, this.#deps.provider.circuit.retryAfterMs)
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
    this.revoke(record, session.tag)
    return { is: 'ended' }
  }

  /** Retries during a short outage: the old refresh token is used up, and `record` is the only copy of the new one. */
  async #replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const giveUpAt = performance.now() + SAVE_MS
    for (;;) {
      try {
        return await this.#deps.sessions.replace(session, record)
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || performance.now() >= giveUpAt) throw error
        await delay(POLL_MS)
      }
    }
  }

  async #endRefused(session: Session): Promise<TokenLookup> {
    const { sessions } = this.#deps
    // Read again: if this process stalled until its lock expired, another may have rotated the token meanwhile. Only a
    // refusal of the current token ends the session.
    const current = await sessions.load(session.id)
    if (current !== undefined && current.sealed !== session.sealed) return { is: 'good', session: current }
    await sessions.end(session.key, 'refused', { subjectTag: session.subjectTag })
    return { is: 'ended' }
  }
}
