import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Requester } from '../http/requester.ts'
import type { Provider } from '../oauth/provider.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { WRITTEN_MS } from '../telemetry/log-writer.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { AccessTokens } from './access-tokens.ts'
import type { Envelope } from './envelope.ts'
import type { CausedEnd, EndedBy } from './endings.ts'
import { SessionRepository } from './repository.ts'
import { sessionState, type Session, type SessionRecord, type SessionState } from './session.ts'
import { SessionCookie } from './session-cookie.ts'
import { SessionReader, type SessionLookup } from './session-reader.ts'
import type { SubjectDependencies, Subjects } from './subjects.ts'
import { registerSessionWriter } from './session-writer.ts'
import { TokenRenewal, type Client, type OwnedTokens, type TokenLookup } from './token-renewal.ts'
import { SessionWatcher, type Watch } from './watcher.ts'

export { Envelope } from './envelope.ts'
export { MAX_DEAF_MS } from './near-cache.ts'
export type { CausedEnd } from './endings.ts'
export { IDENTITY_TIMEOUT_MS, isSubject, isTokenAccepted, recordOf, refusalSource, sharerOf } from './session.ts'
export type { Session, SessionRecord, SessionState } from './session.ts'
export { createSigner, isSame, signingKeys } from './session-cookie.ts'
export type { CookieSigner, NamedSession, SessionCookie } from './session-cookie.ts'
export type { ProviderLogouts } from './provider-logouts.ts'
export type { SessionLookup } from './session-reader.ts'
export { newSessionId, saveNewSession } from './session-writer.ts'
export type { SubjectsOwn } from './own-sessions.ts'
export type { SubjectSession, Subjects } from './subjects.ts'

/**
 * What a request needs of the session's access token. `valid`: that it can be used. `repeatable`: the same, but the request is
 * repeated if upstream refuses the token, so it goes on with one that is due, but still valid, while another one is fetched.
 * `none`: nothing, so it goes on whatever the state of the token.
 */
export type TokenNeed = 'valid' | 'repeatable' | 'none'

/** The result of authorizing a browser's cookie. `tag` identifies in the log a session that exists but cannot be used. */
export type Authorization =
  /** The session's access token can be used, if the request needs it. */
  | { readonly is: 'authorized'; readonly session: Session }
  | { readonly is: 'anonymous' }
  /** The session has just ended: at a limit, by a logout, or because the provider or upstream refused its token. */
  | { readonly is: 'ended'; readonly tag: string }
  | { readonly is: 'storeDown'; readonly cause: StoreUnavailable }
  /** The token must be renewed, but cannot be at present. The client may try again after `retryAfterMs`. */
  | {
      readonly is: 'providerDown'
      readonly tag: string
      readonly cause: unknown
      readonly retryAfterMs: number
    }
  /** Upstream has refused the token, which is not renewed before `retryAfterMs`, since the last renewal was so recent. */
  | { readonly is: 'justRenewed'; readonly tag: string; readonly retryAfterMs: number }

interface SessionDependencies {
  readonly store: Store
  readonly envelope: Envelope
  readonly provider: Provider
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

/** The only entry point to sessions: authorizes cookies, renews refused tokens, and ends and watches sessions. */
export class Sessions {
  readonly cookie: SessionCookie
  readonly #repository: SessionRepository
  readonly #reader: SessionReader
  readonly #watcher: SessionWatcher
  readonly #renewal: TokenRenewal
  readonly #tokens: AccessTokens

  constructor(
    config: Pick<Config, 'cookies' | 'secrets' | 'session' | 'logsPlainSubjects' | 'oauth'>,
    deps: SessionDependencies,
  ) {
    const { store, metrics, log } = deps
    this.cookie = new SessionCookie(config.cookies, config.secrets)
    this.#repository = new SessionRepository(store, deps.envelope, config.session, {
      secrets: config.secrets,
      logsPlainSubjects: config.logsPlainSubjects,
      needsIdentity: config.oauth.oidc !== undefined,
    })
    this.#reader = new SessionReader(this.cookie, this.#repository, store)
    this.#watcher = new SessionWatcher(this.#repository, this.#reader, store, {
      storeGraceMs: config.session.relayStoreGraceMs,
      keepAlive: config.session.relaysKeepSession,
      renew: (session, client) => this.#tokens.renewed(session, client),
    })
    this.#renewal = new TokenRenewal({ ...deps, sessions: this.#repository })
    this.#tokens = new AccessTokens(this.#repository, this.#reader, this.#renewal)
    const { near } = this.#reader
    metrics.sessionStore.nearCache = () => ({ ...near.counts, ...near.size })
    this.#repository.endings.onUnreplicated(() => metrics.unreplicatedEnds.inc())
    this.#repository.endings.onRevoke(({ key, reason, record }) =>
      reason === 'logout' && record !== undefined ? this.revoke(record, this.tag(key)) : undefined,
    )
    this.#repository.endings.onRecord(({ key, reason, requester, subjectTag: subject }) => {
      metrics.sessionsEnded.inc({ reason })
      audit(log, 'session_ended', { reason, session: this.tag(key), subject, ...requester })
      // A kill would lose a line that still waits to be written.
      return delay(WRITTEN_MS, undefined, { ref: false })
    })
  }

  /**
   * Authorizes a request by its cookie and renews the session's token if necessary. Counts as use of the session.
   * Synchronous in the steady state: the session is cached and its token does not need a renewal.
   * @param client whose request it is
   */
  authorize(
    cookieHeader: string | undefined,
    need: TokenNeed = 'valid',
    client?: Client,
  ): Authorization | Promise<Authorization> {
    const found = this.#reader.use(cookieHeader)
    return found instanceof Promise
      ? found.then((later) => this.#authorize(later, need, client))
      : this.#authorize(found, need, client)
  }

  /**
   * Finds a replacement after upstream refused the token of a session: the current token or a renewed one. Without either,
   * the session ends.
   * @param mayRenew false if a renewed token was refused too
   * @param requester of the refused call
   */
  renewAfterRefusal(session: Session, mayRenew: boolean, requester?: Requester): Promise<Authorization> {
    return toAuthorization(session, this.#tokens.afterRefusal(session, mayRenew, requester))
  }

  /** Upstream has accepted the token of a session for a call. */
  noteAccepted(session: Session): void {
    this.#renewal.renewed.accepted(session)
  }

  /** The session of a Cookie header, whatever the state of its token. Does not count as use. */
  read(cookieHeader: string | undefined): SessionLookup | Promise<SessionLookup> {
    return this.#reader.read(cookieHeader)
  }

  /**
   * Whether a session that was authorized earlier is still as it was, as far as this process has heard: never after it stood still,
   * before it has heard again. If this is false, the session may have ended and must be read again before anything is sent.
   */
  isCurrent(session: Session): boolean {
    return this.#reader.near.isCurrent(session)
  }

  /** Authorizes a session that was read earlier, like a request with its cookie now. */
  async reauthorize(session: Session): Promise<Authorization> {
    return this.#authorize(await this.reread(session))
  }

  /** Reads a session again from the store, bypassing the near cache. */
  reread({ id }: Pick<Session, 'id'>): Promise<SessionLookup> {
    return this.#reader.reload(id)
  }

  /** Uses the session of a Cookie header: its idle limit has moved, if that was due, when this resolves. */
  extend(cookieHeader: string | undefined): Promise<SessionLookup> {
    return this.#reader.extend(cookieHeader)
  }

  /** The part of a session that its page may know; undefined stands for no session. */
  state(session: Session | undefined): SessionState {
    const { limits, stepMs } = this.#repository
    return sessionState(session, limits.idleMs, stepMs)
  }

  /** Watches a live session, whose end may come from any instance. Returns a function that stops the watch. */
  watch(session: Session, watch: Watch): () => void {
    return this.#watcher.watch(session, watch)
  }

  /**
   * Asks the store whether a watched session is live. If not, its watches are told before this resolves. Never rejects.
   * @returns false if the store could not be asked
   */
  confirm(session: Session): Promise<boolean> {
    return this.#watcher.confirm(session)
  }

  /** Ends a session that nobody gets, since its login fails: once the store is back, if it is away. Never rejects. */
  discard(key: string, by: EndedBy): Promise<void> {
    return this.#repository.takeBack(() => this.#repository.end(key, 'replaced', by))
  }

  /** See {@link SessionRepository.endReplaced}. */
  endReplaced(key: string, by: EndedBy): Promise<void> {
    return this.#repository.endReplaced(key, by)
  }

  /** Ends a session everywhere. Returns whether it still existed. @throws StoreUnavailable */
  end(key: string, reason: CausedEnd, by?: EndedBy): Promise<boolean> {
    return this.#repository.end(key, reason, by)
  }

  /**
   * Ends a session by its id; a logout revokes its final tokens. @throws StoreUnavailable
   * @param isAuthentic false if the id may be made up
   * @returns its final record; undefined if the session was gone or this instance cannot decrypt it
   */
  endById(
    id: string,
    reason: CausedEnd,
    isAuthentic: boolean,
    requester?: Requester,
  ): Promise<SessionRecord | undefined> {
    return this.#repository.endById(id, reason, isAuthentic, requester)
  }

  /**
   * Revokes unused tokens. Never rejects; undefined if the provider has no revocation.
   * @param tag of their session, if they had one
   */
  revoke(tokens: OwnedTokens, tag?: string): Promise<void> | undefined {
    return this.#renewal.revoke(tokens, tag)
  }

  /** Identifies a session in the log. */
  tag(key: string): string {
    return this.#repository.tag(key)
  }

  /** Ends the renewal of tokens. Resolves once those under way are over, and all that follows an end. Never rejects. */
  async close(): Promise<void> {
    await this.#tokens.close()
    await this.#repository.endings.close()
  }

  /** Identifies a subject in the log: by a keyed hash, or as it is (LOG_SUBJECT). Undefined where there is none. */
  subjectTag<Subject extends string | undefined>(subject: Subject): Subject | string {
    return this.#repository.subjectTag(subject)
  }

  /** Creates the parts that only sessions with a subject need. Without IDENTITY_PATH and OIDC, none of them is loaded. */
  async createSubjects(
    config: Pick<Config, 'identity' | 'oauth' | 'secrets' | 'upstream'>,
    deps: Omit<SubjectDependencies, 'sessions'>,
  ): Promise<Subjects | undefined> {
    if (config.identity === undefined && config.oauth.oidc === undefined) return undefined
    const { Subjects } = await import('./subjects.ts')
    return Subjects.open(config, { ...deps, sessions: this.#repository })
  }

  /** Enables {@link saveNewSession} for routes in the scope of `fastify`. */
  registerWriter(fastify: FastifyInstance): Promise<void> {
    return registerSessionWriter(fastify, this.cookie, this.#repository)
  }

  #authorize(found: SessionLookup, need: TokenNeed = 'valid', client?: Client): Authorization | Promise<Authorization> {
    switch (found.is) {
      case 'none':
        return { is: 'anonymous' }
      case 'storeDown':
        return found
      case 'live': {
        const { session } = found
        const isUsable =
          need === 'none' ||
          this.#tokens.isGood(session) ||
          (need === 'repeatable' && this.#tokens.renewAhead(session, client))
        return isUsable
          ? { is: 'authorized', session }
          : toAuthorization(session, this.#tokens.renewed(session, client))
      }
    }
  }
}

async function toAuthorization(session: Session, lookup: Promise<TokenLookup>): Promise<Authorization> {
  try {
    const found = await lookup
    return found.is === 'good' ? { is: 'authorized', session: found.session } : { ...found, tag: session.tag }
  } catch (cause) {
    if (cause instanceof StoreUnavailable) return { is: 'storeDown', cause }
    throw cause
  }
}
