import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { Permits } from '../limits/permits.ts'
import { backoffMs } from '../time/backoff.ts'
import { standstill } from '../time/standstill.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { activeSpan } from '../telemetry/traces/span.ts'
import { partKey } from '../store/keys.ts'
import { refusalOf, type FailedOutcome, type TokenGrant } from '../oauth/grant-outcome.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { StoreUnavailable, wasSent, type Store } from '../store/store.ts'
import { MAX_REFRESHES, type Provider } from '../oauth/provider.ts'
import { PROVIDER_TIMEOUT_MS } from '../oauth/provider-traffic.ts'
import { codeLabel, RETRY_REFUSED_MS } from './refusals.ts'
import { RenewalPauses } from './renewal-pauses.ts'
import { RenewedTokens } from './renewed-tokens.ts'
import { SAVE_MS, type SessionRepository } from './repository.ts'
import { recordOf, refusalSource, sharerOf, type Session, type SessionRecord } from './session.ts'
import { SharedRefusals, type RefusedUser } from './shared-refusals.ts'
import { storeNow } from '../time/store-time.ts'

/** The lock outlives the slowest refresh and its saving, and expires if its owner dies. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + SAVE_MS + 1000
const POLL_MS = 50
/** The poll interval grows up to this, so that waiting for a slow provider does not load the store. */
const MAX_POLL_MS = 1000

/** When a caller that has waited in vain should try again. */
export const RETRY_MS = 1000

/** Sessions of one user that are renewed at once: a quarter of all, since a provider may be slow for that user alone. */
const MAX_ASKING = MAX_REFRESHES / 4

/** A session whose access token can be used, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  /** The caller may try again after `retryAfterMs`. */
  | { readonly is: 'providerDown'; readonly cause: unknown; readonly retryAfterMs: number }
  /** Upstream has refused the token, and an earlier one so recently that the token is not renewed before `retryAfterMs`. */
  | { readonly is: 'justRenewed'; readonly retryAfterMs: number }

/** The client of a request. A request is one: its address, which may take a while to find, is only read where it is needed. */
export interface Client {
  readonly ip: string
}

/** The reason for a renewal. */
export interface RenewalCause {
  /** Whose request needs the token; absent where that is not known. */
  readonly client?: Client | undefined
  /** Upstream has refused the token. */
  readonly isAfterRefusal?: boolean
}

/** The tokens of a session, and its subject. */
export type OwnedTokens = Pick<SessionRecord, 'accessToken' | 'refreshToken' | 'subject'>

interface RenewalDependencies {
  readonly store: Store
  readonly sessions: SessionRepository
  readonly provider: Provider
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

/** The name by which the user of a renewal counts among those who are refused, and whether upstream has refused the token. */
interface Purpose {
  readonly source: string
  readonly isAfterRefusal: boolean
  /** Saves the new tokens, where the store was away for too long. */
  save?: () => Promise<unknown>
}

/** Renews the tokens of a session: once for all instances, and saved before they are used. */
export class TokenRenewal {
  readonly #deps: RenewalDependencies
  readonly #pauses = new RenewalPauses()
  readonly #refusals: SharedRefusals
  /** The renewals that were caused by 401s of upstream. */
  readonly renewed: RenewedTokens
  /** Renewals that wait for the provider, by user. */
  readonly #asking = new Permits()
  /** Locks to release, and new tokens to save before. */
  readonly pending: PendingWrites
  /** From now on no renewal begins, and none waits for another process any more. */
  isEnding = false
  /** Why the last refresh failed; logged for every refresh that is skipped because of it. */
  #lastCause: unknown

  constructor(deps: RenewalDependencies) {
    this.#deps = deps
    this.renewed = new RenewedTokens(deps.store)
    this.#refusals = new SharedRefusals(deps.store)
    deps.provider.onLogin = (askedAt) => this.#refusals.granted(askedAt)
    this.pending = new PendingWrites(deps.store)
  }

  /** The result that replaces a renewal after a recent failure; undefined if the session may be renewed now. */
  paused(session: Session, { client }: RenewalCause): TokenLookup | undefined {
    const { provider, metrics } = this.#deps
    const ofSession = this.#pauses.remainingMs(session.key, provider.circuit.workedAt)
    const source = refusalSource(session, client?.ip)
    const ofProvider = Math.max(provider.circuit.retryAfterMs(source), provider.limit.retryAfterMs(source))
    if (ofSession === 0 && ofProvider === 0) return undefined
    metrics.provider.refreshSkipped(ofProvider > 0 ? 'provider' : 'session')
    return this.#skipped(Math.max(ofSession, ofProvider))
  }

  /** Refreshes and saves the token under a lock that all instances share, or waits for the owner of the lock to do so. */
  async renew(session: Session, { client, isAfterRefusal = false }: RenewalCause): Promise<TokenLookup> {
    const waited = activeSpan().measure('wait for the refresh lock')
    // Before the client may have left: then it has no address.
    const source = refusalSource(session, client?.ip)
    try {
      return await this.#renewLocked(session, { source, isAfterRefusal }, waited)
    } finally {
      // Another instance has had the lock all the time.
      waited()
    }
  }

  async #renewLocked(session: Session, purpose: Purpose, onLocked: () => void): Promise<TokenLookup> {
    const { store, sessions } = this.#deps
    const lock = partKey(session.key, 'refresh')
    const owner = randomUUID()
    // Longer than a lock can last: if its owner died, this process takes the lock once it has expired.
    const giveUpAt = performance.now() + LOCK_MS + 1000
    let mayHaveLock = false
    try {
      for (let tries = 0; !this.isEnding && performance.now() < giveUpAt; tries++) {
        const { count } = standstill
        mayHaveLock = await store.lock(lock, owner, LOCK_MS).catch((error: unknown) => {
          mayHaveLock ||= wasSent(error)
          throw error
        })
        if (mayHaveLock) onLocked()
        // Read again under the lock: another instance may have renewed the token, or the session may have ended.
        const [current, refusals] = await Promise.all([
          sessions.load(session.id),
          mayHaveLock ? this.#refusals.read(session.key) : undefined,
        ])
        if (current === undefined) return { is: 'ended' }
        // The sealed text is compared and not the access token: a provider may issue the same one again, for example a JWT of the same second.
        if (current.sealed !== session.sealed) return { is: 'good', session: current }
        // After a standstill the lock may have expired, and another instance may have used up the token.
        if (mayHaveLock && count === standstill.count) return await this.#refresh(current, purpose, refusals)
        await delay(backoffMs(tries, { firstMs: POLL_MS, longestMs: MAX_POLL_MS }))
      }
    } finally {
      // With new tokens that could not be saved it stays until they are, unless it expires: the old ones are used up.
      const release = async (): Promise<boolean> => {
        await purpose.save?.()
        delete purpose.save
        return store.removeIf(lock, owner)
      }
      // Without a reply it is released when the store is back, or nobody could renew the token until the lock expires.
      const until = (): number => (purpose.save === undefined ? storeNow() + LOCK_MS : session.record.endsAt)
      if (mayHaveLock) await release().catch(() => this.pending.undo(release, until()))
    }
    return { is: 'providerDown', cause: new Error('another process holds the refresh lock'), retryAfterMs: RETRY_MS }
  }

  /**
   * Revokes the tokens of a session. Never rejects; undefined if the provider has no revocation.
   * @param tag of the session, for the log
   */
  revoke(tokens: OwnedTokens, tag?: string): Promise<void> | undefined {
    const { provider, sessions, log } = this.#deps
    const subject = sessions.subjectTag(tokens.subject)
    return provider.revoke(tokens)?.then((failures) => {
      for (const failure of failures) audit(log, 'revocation_failed', { session: tag, subject, ...failure })
    })
  }

  /** @param refusals the stored record of earlier refusals */
  async #refresh(session: Session, purpose: Purpose, refusals: string | undefined): Promise<TokenLookup> {
    const { provider, metrics, sessions } = this.#deps
    const { record, key } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const { source } = purpose
    const user = {
      key,
      tokens: sessions.tag(session.sealed),
      name: sessions.tag(sharerOf(session)),
      source: sessions.tag(source),
      tokenExpiresAt: record.tokenExpiresAt,
    }
    const leftMs = refusals === undefined ? 0 : await this.#refusals.leftMs(refusals, user)
    if (leftMs > 0) return this.#pause(user, leftMs)
    if (!this.#asking.acquire(user.source, MAX_ASKING)) {
      metrics.provider.refreshSkipped('session')
      return { is: 'providerDown', cause: new Error('too many renewals of the user'), retryAfterMs: RETRY_MS }
    }
    const askedAt = standstill.now()
    const { workedAt } = provider.circuit
    const outcome = await provider
      .refresh(record.refreshToken, source, record.oidc?.sub)
      .finally(() => this.#asking.release(user.source))
    if (outcome.is === 'skipped') {
      metrics.provider.refreshSkipped('provider')
      return this.#skipped(outcome.retryAfterMs)
    }
    metrics.refreshes.inc({ outcome: outcome.is === 'refused' ? outcome.code : outcome.is })
    if (outcome.is === 'granted') {
      this.#refusals.granted(askedAt, user.name)
      // A provider that does not rotate refresh tokens returns none; the old one stays valid.
      const grant = { refreshToken: record.refreshToken, ...outcome.grant }
      const saved = await this.#granted(session, grant, purpose)
      if (refusals !== undefined) await this.#refusals.forget(key).catch(() => undefined)
      return saved
    }
    const code = refusalOf(outcome)
    if (code === 'invalid_grant') return this.#endRefused(session, outcome)
    if (code !== undefined) return this.#refused(session, user, { code, outcome, refusals })
    if (outcome.is === 'unavailable' && outcome.busyForMs !== undefined) {
      const { busyForMs } = outcome
      const limited = this.#pause(user, busyForMs, outcome)
      await this.#refusals.limited(user, busyForMs, refusals)
      return limited
    }
    return this.#failure(key, source, outcome, workedAt)
  }

  async #granted(session: Session, grant: TokenGrant, purpose: Purpose): Promise<TokenLookup> {
    const { log } = this.#deps
    this.#pauses.end(session.key)
    audit(log, 'token_refreshed', { session: session.tag, subject: session.subjectTag })
    if (grant.lifetimeGuessed) logFailure(log, 'the provider named no usable expires_in')
    const renewed = recordOf(grant, session.record)
    if (!purpose.isAfterRefusal) return this.#save(session, renewed, purpose)
    const saved = await this.#save(session, { ...renewed, isAfterRefusal: true }, purpose)
    // Unless the session goes on with other tokens. Without the mark another 401 would cause another renewal, and no harm.
    if (saved.is === 'good' && saved.session.record.isAfterRefusal === true) {
      await this.renewed.note(session.key).catch(() => undefined)
    }
    return saved
  }

  /** The provider has refused the refresh of this session, and perhaps of no other. */
  async #refused(
    session: Session,
    user: RefusedUser,
    { code, outcome, refusals }: { code: string; outcome: FailedOutcome; refusals: string | undefined },
  ): Promise<TokenLookup> {
    const { log, metrics } = this.#deps
    const paused = this.#pause(user, RETRY_REFUSED_MS, outcome)
    const { ends, isTrouble } = await this.#refusals.refused(user, code, refusals)
    if (ends) return this.#endRefused(session, outcome)
    if (isTrouble) {
      metrics.provider.refusesMany(codeLabel(code))
      logFailure(log, 'the provider refuses several users, and grants nobody', { code }, outcome.cause, 'error')
    }
    return paused
  }

  /** Pauses the renewal of one session, but not beyond the end of its token: then it is tried again. */
  #pause({ key, tokenExpiresAt }: RefusedUser, ms: number, outcome?: FailedOutcome): TokenLookup {
    const leftMs = tokenExpiresAt - storeNow()
    this.#pauses.beginFor(key, leftMs > 0 ? Math.min(ms, leftMs) : ms)
    if (outcome !== undefined) this.#logFailure(outcome)
    return this.#skipped(ms)
  }

  #skipped(retryAfterMs: number): TokenLookup {
    return { is: 'providerDown', cause: this.#lastCause, retryAfterMs }
  }

  /** @param workedAt when the provider had last worked, before it was asked */
  #failure(key: string, source: string, outcome: FailedOutcome, workedAt: number): TokenLookup {
    this.#logFailure(outcome)
    const pauseMs = this.#pauses.begin(key, outcome.code !== 'login_failed', workedAt)
    return this.#skipped(Math.max(pauseMs, this.#deps.provider.circuit.retryAfterMs(source)))
  }

  #logFailure(outcome: FailedOutcome): void {
    const { code, cause } = outcome
    this.#lastCause = cause
    const what = outcome.is === 'refused' ? 'refused a refresh' : 'was unavailable for a refresh'
    // The token endpoint itself rejects this client's registration, which only the operator can correct.
    const level = code === 'invalid_client' ? 'error' : 'warn'
    logFailure(this.#deps.log, `the provider ${what}`, { code }, cause, level)
  }

  /** Saves new tokens before their first use. If the session has ended meanwhile, it stays ended and they are revoked. */
  async #save(session: Session, record: SessionRecord, purpose: Purpose): Promise<TokenLookup> {
    const { sessions } = this.#deps
    const saveLate = async () => this.#saved(session, record, await sessions.replace(session, record))
    const saved = await sessions.replaceInTime(session, record).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) purpose.save = saveLate
      throw error
    })
    return this.#saved(session, record, saved)
  }

  async #saved(session: Session, record: SessionRecord, saved: Session | undefined): Promise<TokenLookup> {
    if (saved !== undefined) return { is: 'good', session: saved }
    const current = await this.#deps.sessions.load(session.id)
    // A session that continues must not lose its tokens: revoking these could revoke the whole grant.
    if (current !== undefined) return { is: 'good', session: current }
    void this.revoke(record, session.tag)
    return { is: 'ended' }
  }

  async #endRefused(session: Session, { cause }: FailedOutcome): Promise<TokenLookup> {
    const { sessions, log } = this.#deps
    audit(log, 'refresh_refused', { session: session.tag, subject: session.subjectTag, cause })
    // Read again: if this process stalled until its lock expired, another may have rotated the token meanwhile. Only a
    // refusal of the current token ends the session.
    const current = await sessions.load(session.id)
    if (current !== undefined && current.sealed !== session.sealed) return { is: 'good', session: current }
    await sessions.end(session.key, 'refused', { subjectTag: session.subjectTag })
    return { is: 'ended' }
  }
}
