import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { logFailure } from '../telemetry/failure-log.ts'
import type { Requester } from '../http/requester.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { SessionReader } from './session-reader.ts'
import type { Session, SessionRecord, SessionRepository } from './repository.ts'
import { refreshLockKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import type { GrantOutcome } from '../oauth/grant-outcome.ts'
import { PROVIDER_TIMEOUT_MS, type Provider } from '../oauth/provider.ts'
import { RenewalPauses } from './renewal-pauses.ts'
import { recordOf, renewAt } from './token-record.ts'

/** How long a token that was refreshed is tried to be saved: lost, it would take the session with it. */
const SAVE_MS = 5000
/** The lock outlives the slowest refresh, its saving included, and frees itself when its holder died. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + SAVE_MS + 1000
const POLL_MS = 50
/** Whoever waits for another instance asks less and less often: a provider that is slow must not load the store. */
const LONGEST_POLL_MS = 1000
/** Nobody waits longer for a renewal, which goes on without them: with a token that is still valid, and without. */
const PATIENCE_MS = { valid: 2000, expired: 5000 }
/** What a browser is told that waited so long. */
const RETRY_MS = 1000

/** A session with a token good for use, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  /** It is worth trying again after so many ms. */
  | { readonly is: 'providerDown'; readonly cause: unknown; readonly retryAfterMs: number }

/** A renewal under way. */
interface Renewal {
  /** Epoch ms. */
  readonly startedAt: number
  readonly result: Promise<TokenLookup>
}

/** Keeps access tokens good: one refresh per expiry, whatever the number of requests, processes and instances. */
export class AccessTokens {
  readonly #store: Store
  readonly #sessions: SessionRepository
  readonly #reader: SessionReader
  readonly #provider: Provider
  readonly #metrics: Metrics
  readonly #log: FastifyBaseLogger
  /** Under way in this process, by the sealed text of the session: one for each version of it. */
  readonly #renewals = new Map<string, Renewal>()
  readonly #pauses = new RenewalPauses()
  /** Why the last refresh failed, for the log of all that are held back because of it. */
  #lastCause: unknown

  constructor(deps: {
    store: Store
    sessions: SessionRepository
    reader: SessionReader
    provider: Provider
    metrics: Metrics
    log: FastifyBaseLogger
  }) {
    this.#store = deps.store
    this.#sessions = deps.sessions
    this.#reader = deps.reader
    this.#provider = deps.provider
    this.#metrics = deps.metrics
    this.#log = deps.log
  }

  /** Whether the token can be used as it is; the hot path asks no more than this. */
  isGood({ record }: Session): boolean {
    return record.refreshToken === undefined || Date.now() < renewAt(record)
  }

  /** A session whose token is good, renewed if it is time. As long as the old token lasts, no failure is noticed. @throws StoreUnavailable */
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
   * What to do after upstream refused the token of `session`: the current one, a renewed one, or the end.
   * @param mayRenew false when a renewed one was refused too, so that it ends here
   * @param by who asked for the call that was refused
   */
  async afterRefusal(session: Session, mayRenew: boolean, by?: Requester): Promise<TokenLookup> {
    const found = await this.#reader.reload(session.id)
    if (found.is === 'storeDown') throw found.cause
    if (found.is === 'none') return { is: 'ended' }
    if (found.session.record.accessToken !== session.record.accessToken)
      return { is: 'good', session: found.session }
    if (mayRenew && session.record.refreshToken !== undefined) {
      return this.#renewOnce(session, PATIENCE_MS.expired)
    }
    await this.#sessions.end(session.key, 'refused', by)
    return { is: 'ended' }
  }

  /** Joins the renewal of a session, or starts one, unless the last has just failed. Waits until it has lasted for `patienceMs`. */
  async #renewOnce(session: Session, patienceMs: number): Promise<TokenLookup> {
    const running = this.#renewals.get(session.sealed)
    if (running === undefined) {
      const retryAfterMs = this.#retryAfterMs(session.key)
      if (retryAfterMs > 0) return this.#refreshSkipped(retryAfterMs)
    }
    const { startedAt, result } = running ?? this.#start(session)
    const inTime = await settledBefore(result, startedAt + patienceMs)
    return inTime ?? { is: 'providerDown', cause: new Error('a renewal takes long'), retryAfterMs: RETRY_MS }
  }

  #start(session: Session): Renewal {
    const result = this.#renew(session).finally(() => this.#renewals.delete(session.sealed))
    const renewal = { startedAt: Date.now(), result }
    this.#renewals.set(session.sealed, renewal)
    return renewal
  }

  /** Milliseconds for which a session is not renewed, because that has failed lately; 0 when it may be. */
  #retryAfterMs(key: string): number {
    const ofSession = this.#pauses.left(key, this.#provider.workedAt)
    const ofProvider = this.#provider.refreshAfterMs
    if (ofSession === 0 && ofProvider === 0) return 0
    this.#metrics.provider.refreshSkipped(ofProvider > 0 ? 'provider' : 'session')
    return Math.max(ofSession, ofProvider)
  }

  /** Lock, re-read, re-check, refresh, save, release; or wait for who holds the lock to do it. */
  async #renew(session: Session): Promise<TokenLookup> {
    const lock = refreshLockKey(session.key)
    const owner = randomUUID()
    // Longer than any lock: one whose holder died is waited out, then taken.
    const giveUpAt = Date.now() + LOCK_MS + 1000
    for (let pollMs = POLL_MS; Date.now() < giveUpAt; pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS)) {
      const mine = await this.#store.lock(lock, owner, Date.now() + LOCK_MS)
      try {
        // Re-read under the lock: another instance may just have done it, or the session may have ended.
        const current = await this.#sessions.load(session.id)
        if (current === undefined) return { is: 'ended' }
        if (current.record.accessToken !== session.record.accessToken) return { is: 'good', session: current }
        if (mine) return await this.#refresh(current)
      } finally {
        if (mine) await this.#store.removeIf(lock, owner).catch(() => undefined)
      }
      await delay(pollMs)
    }
    const cause = new Error('another process holds the refresh lock')
    return { is: 'providerDown', cause, retryAfterMs: RETRY_MS }
  }

  async #refresh(session: Session): Promise<TokenLookup> {
    const { record, key } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const outcome = await this.#provider.refresh(record.refreshToken)
    if (outcome.is === 'skipped') {
      this.#metrics.provider.refreshSkipped('provider')
      return this.#refreshSkipped(outcome.retryAfterMs)
    }
    this.#metrics.refreshes.inc({ outcome: outcome.is === 'refused' ? outcome.code : outcome.is })
    if (outcome.is === 'granted') {
      this.#pauses.end(key)
      this.#log.info({ audit: 'token_refreshed', session: session.tag }, 'token refreshed')
      if (outcome.grant.lifetimeGuessed) logFailure(this.#log, 'the provider named no usable expires_in')
      // A provider that does not rotate names no new refresh token: the old one goes on.
      const grant = { refreshToken: record.refreshToken, ...outcome.grant }
      return this.#save(session, recordOf(grant, record))
    }
    if (outcome.is === 'refused' && outcome.code === 'invalid_grant') return this.#refused(session)
    return this.#failure(key, outcome)
  }

  #refreshSkipped(retryAfterMs: number): TokenLookup {
    return { is: 'providerDown', cause: this.#lastCause, retryAfterMs }
  }

  /** Each failure in a row makes the next try of this session wait longer. */
  #failure(key: string, outcome: Exclude<GrantOutcome, { is: 'granted' }>): TokenLookup {
    const { code, cause } = outcome
    this.#lastCause = cause
    const pause = this.#pauses.begin(key, code !== 'login_failed')
    const retryAfterMs = Math.max(pause, this.#provider.refreshAfterMs)
    const what = outcome.is === 'refused' ? 'refused a refresh' : 'could not be asked for a refresh'
    // Told by the token endpoint: what we are to the provider is wrong, and nobody but the operator can put it right.
    const level = code === 'invalid_client' ? 'error' : 'warn'
    logFailure(this.#log, `the provider ${what}`, { code }, cause, level)
    return { is: 'providerDown', cause, retryAfterMs }
  }

  /** Saved before it is used. A session that ended meanwhile stays ended, and what arrived too late is revoked. */
  async #save(session: Session, record: SessionRecord): Promise<TokenLookup> {
    const saved = await this.#replace(session, record)
    if (saved !== undefined) return { is: 'good', session: saved }
    const current = await this.#sessions.load(session.id)
    // Only then: on a session that goes on, revoking could take the grant away that it lives on.
    if (current !== undefined) return { is: 'good', session: current }
    this.revoke(record)
    return { is: 'ended' }
  }

  /** Compare-and-set that sits out a short outage: the old refresh token is used up, so this is the only copy. */
  async #replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const giveUpAt = Date.now() + SAVE_MS
    for (;;) {
      try {
        return await this.#sessions.replace(session, record)
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || Date.now() >= giveUpAt) throw error
        await delay(POLL_MS)
      }
    }
  }

  async #refused(session: Session): Promise<TokenLookup> {
    // Whoever took the lock over from a stalled holder may have rotated the token: only the current one counts.
    const current = await this.#sessions.load(session.id)
    if (current !== undefined && current.record.accessToken !== session.record.accessToken) {
      return { is: 'good', session: current }
    }
    await this.#sessions.end(session.key, 'refused')
    return { is: 'ended' }
  }

  /** Revokes what a session held, without anybody waiting for it. */
  revoke(record: Pick<SessionRecord, 'accessToken' | 'refreshToken'>): void {
    const tokens = [record.refreshToken, record.accessToken].filter((token) => token !== undefined)
    void Promise.all(tokens.map((token) => this.#provider.revoke(token))).then((done) => {
      if (done.includes(false)) logFailure(this.#log, 'a token could not be revoked')
    })
  }
}

/** What a promise resolves with, or undefined at `deadline` (epoch ms). */
async function settledBefore<Value>(promise: Promise<Value>, deadline: number): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, deadline - Date.now()), undefined)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

function delay(ms: number): Promise<undefined> {
  return new Promise((resolve) => void setTimeout(resolve, ms, undefined))
}
