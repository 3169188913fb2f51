import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { Metrics } from '../measure.ts'
import type { SessionReader } from '../session/session-reader.ts'
import type { Session, SessionRecord, Sessions } from '../session/sessions.ts'
import { refreshLockKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { PROVIDER_TIMEOUT_MS, type Provider, type TokenGrant } from './provider.ts'

/** The lock outlives the slowest exchange, and frees itself when its holder died. */
const LOCK_MS = PROVIDER_TIMEOUT_MS + 5000
const POLL_MS = 50
const MAX_MARGIN_MS = 60_000

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
export function recordOf(grant: TokenGrant, session: { endsAt: number; loginKey: string }): SessionRecord {
  const { accessToken, expiresAt, refreshToken, scope } = grant
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
  readonly #renewals = new Map<string, Promise<TokenLookup>>()

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
    const result = await this.#renewOnce(session)
    const stillValid = Date.now() < session.record.tokenExpiresAt
    return result.is === 'providerDown' && stillValid ? { is: 'good', session } : result
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
    const running = this.#renewals.get(session.key)
    if (running !== undefined) return running
    const renewal = this.#renew(session).finally(() => this.#renewals.delete(session.key))
    this.#renewals.set(session.key, renewal)
    return renewal
  }

  /** Lock, re-read, re-check, refresh, save, release; or wait for who holds the lock to do it. */
  async #renew(session: Session): Promise<TokenLookup> {
    const lock = refreshLockKey(session.key)
    const owner = randomUUID()
    const giveUpAt = Date.now() + LOCK_MS
    while (Date.now() < giveUpAt) {
      const mine = await this.#store.create(lock, owner, Date.now() + LOCK_MS)
      try {
        // Re-read under the lock: another instance may just have done it, or the session may have ended.
        const current = await this.#sessions.load(session.id)
        if (current === undefined) return { is: 'ended' }
        if (current.record.accessToken !== session.record.accessToken) return { is: 'good', session: current }
        if (mine) return await this.#refresh(current)
      } finally {
        if (mine) await this.#store.removeIf(lock, owner).catch(() => undefined)
      }
      await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
    }
    return { is: 'providerDown', cause: new Error('another process holds the refresh lock') }
  }

  async #refresh(session: Session): Promise<TokenLookup> {
    const { record } = session
    if (record.refreshToken === undefined) return { is: 'good', session }
    const outcome = await this.#provider.refresh(record.refreshToken)
    this.#metrics.refreshes.inc({ outcome: outcome.is === 'refused' ? outcome.code : outcome.is })
    switch (outcome.is) {
      case 'granted': {
        // A provider that does not rotate names no new refresh token: the old one goes on.
        const grant = { refreshToken: record.refreshToken, ...outcome.grant }
        return this.#save(session, recordOf(grant, record))
      }
      case 'refused':
        if (outcome.code === 'invalid_grant') return this.#refused(session)
        this.#log.error({ code: outcome.code, err: outcome.cause }, 'the provider refused a refresh')
        return { is: 'providerDown', cause: outcome.cause }
      case 'unavailable':
        this.#log.warn({ err: outcome.cause }, 'the provider could not be asked for a refresh')
        return { is: 'providerDown', cause: outcome.cause }
    }
  }

  /** Saved before it is used. A session that ended meanwhile stays ended, and what arrived too late is revoked. */
  async #save(session: Session, record: SessionRecord): Promise<TokenLookup> {
    const saved = await this.#sessions.replace(session, record)
    if (saved !== undefined) return { is: 'good', session: saved }
    this.revoke(record)
    const current = await this.#sessions.load(session.id)
    return current === undefined ? { is: 'ended' } : { is: 'good', session: current }
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
      if (done.includes(false)) this.#log.warn({}, 'a token could not be revoked')
    })
  }
}
