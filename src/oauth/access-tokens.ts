import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { LRUCache } from 'lru-cache'
import { logFailure } from '../failure-log.ts'
import type { Metrics } from '../measure.ts'
import type { SessionReader } from '../session/session-reader.ts'
import type { Session, SessionRecord, Sessions } from '../session/sessions.ts'
import { refreshLockKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import { PROVIDER_TIMEOUT_MS, type Provider, type TokenGrant } from './provider.ts'

/** How long a token that was refreshed is tried to be saved: lost, it would take the session with it. */
const SAVE_MS = 5000
/** The lock outlives the slowest refresh, its saving included, and frees itself when its holder died. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + SAVE_MS + 1000
const POLL_MS = 50
const MAX_MARGIN_MS = 60_000
/** With a token that is still valid, nobody waits longer for the next one. */
const PATIENCE_MS = 2000
/** With a token that is still valid, a provider that just failed is left alone for this long. */
const PAUSE_MS = 5000

/** A session with a token good for use, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  | { readonly is: 'providerDown'; readonly cause: unknown }

/** When a token is to be renewed: a little before it expires (epoch ms). */
function renewAt(record: SessionRecord): number {
  return record.tokenExpiresAt - Math.min(MAX_MARGIN_MS, record.tokenLifetimeMs / 10)
}

/** The record of a session from a grant: what it lives on, and until when. */
export function recordOf(
  grant: TokenGrant,
  session: Pick<SessionRecord, 'endsAt' | 'loginKey' | 'scope'>,
): SessionRecord {
  const { accessToken, expiresAt, refreshToken, scope = session.scope } = grant
  return {
    accessToken,
    tokenExpiresAt: expiresAt,
    tokenLifetimeMs: expiresAt - Date.now(),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    scope,
    // Without a refresh token nothing can outlive the access token.
    endsAt: refreshToken === undefined ? Math.min(session.endsAt, expiresAt) : session.endsAt,
    loginKey: session.loginKey,
  }
}

/** Keeps access tokens good: one refresh per expiry, whatever the number of requests, processes and instances. */
export class AccessTokens {
  readonly #store: Store
  readonly #sessions: Sessions
  readonly #reader: SessionReader
  readonly #provider: Provider
  readonly #metrics: Metrics
  readonly #log: FastifyBaseLogger
  /** Under way in this process, by the sealed text of the session: one for each version of it. */
  readonly #renewals = new Map<string, Promise<TokenLookup>>()
  readonly #failedLately = new LRUCache<string, true>({ max: 10_000, ttl: PAUSE_MS })

  constructor(parts: {
    store: Store
    sessions: Sessions
    reader: SessionReader
    provider: Provider
    metrics: Metrics
    log: FastifyBaseLogger
  }) {
    this.#store = parts.store
    this.#sessions = parts.sessions
    this.#reader = parts.reader
    this.#provider = parts.provider
    this.#metrics = parts.metrics
    this.#log = parts.log
  }

  /** Whether the token can be used as it is; the hot path asks no more than this. */
  isGood({ record }: Session): boolean {
    return record.refreshToken === undefined || Date.now() < renewAt(record)
  }

  /** A session whose token is good, renewed if it is time. @throws StoreUnavailable */
  async renewed(session: Session): Promise<TokenLookup> {
    const isValid = () => Date.now() < session.record.tokenExpiresAt
    if (this.#failedLately.has(session.key) && isValid()) return { is: 'good', session }
    const renewal = this.#renewOnce(session)
    const result = await (isValid() ? Promise.race([renewal, delay(PATIENCE_MS)]) : renewal)
    if (isValid() && (result === undefined || result.is === 'providerDown')) return { is: 'good', session }
    return result ?? renewal
  }

  /**
   * What to do after upstream refused the token of `session`: the current one, a renewed one, or the end.
   * @param mayRenew false when a renewed one was refused too, so that it ends here
   */
  async afterRefusal(session: Session, mayRenew: boolean): Promise<TokenLookup> {
    const found = await this.#reader.reload(session.id)
    if (found.is === 'storeDown') throw found.cause
    if (found.is === 'none') return { is: 'ended' }
    if (found.session.record.accessToken !== session.record.accessToken)
      return { is: 'good', session: found.session }
    if (mayRenew && session.record.refreshToken !== undefined) return this.#renewOnce(session)
    await this.#sessions.end(session.key, 'refused')
    return { is: 'ended' }
  }

  #renewOnce(session: Session): Promise<TokenLookup> {
    const running = this.#renewals.get(session.sealed)
    if (running !== undefined) return running
    const renewal = this.#renew(session).finally(() => this.#renewals.delete(session.sealed))
    this.#renewals.set(session.sealed, renewal)
    return renewal
  }

  /** Lock, re-read, re-check, refresh, save, release; or wait for who holds the lock to do it. */
  async #renew(session: Session): Promise<TokenLookup> {
    const lock = refreshLockKey(session.key)
    const owner = randomUUID()
    // Longer than any lock: one whose holder died is waited out, then taken.
    const giveUpAt = Date.now() + LOCK_MS + 1000
    while (Date.now() < giveUpAt) {
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
      await delay(POLL_MS)
    }
    return { is: 'providerDown', cause: new Error('another process holds the refresh lock') }
  }

  async #refresh(session: Session): Promise<TokenLookup> {
    const { record, key } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const outcome = await this.#provider.refresh(record.refreshToken)
    this.#metrics.refreshes.inc({ outcome: outcome.is === 'refused' ? outcome.code : outcome.is })
    if (outcome.is === 'granted') {
      this.#failedLately.delete(key)
      if (outcome.grant.lifetimeGuessed) logFailure(this.#log, 'the provider named no usable expires_in')
      // A provider that does not rotate names no new refresh token: the old one goes on.
      const grant = { refreshToken: record.refreshToken, ...outcome.grant }
      return this.#save(session, recordOf(grant, record))
    }
    const { cause } = outcome
    if (outcome.is === 'refused' && outcome.code === 'invalid_grant') return this.#refused(session)
    this.#failedLately.set(key, true)
    const { code } = outcome
    const what = outcome.is === 'refused' ? 'refused a refresh' : 'could not be asked for a refresh'
    // Told by the token endpoint: what we are to the provider is wrong, and nobody but the operator can put it right.
    const level = code === 'invalid_client' ? 'error' : 'warn'
    logFailure(this.#log, `the provider ${what}`, { code }, cause, level)
    return { is: 'providerDown', cause }
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

function delay(ms: number): Promise<undefined> {
  return new Promise((resolve) => void setTimeout(resolve, ms, undefined))
}
