import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Requester } from '../http/requester.ts'
import type { Provider } from '../oauth/provider.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { AccessTokens, type TokenLookup } from './access-tokens.ts'
import type { Envelope } from './envelope.ts'
import { SessionRepository, type CausedEnd, type Session, type SessionRecord } from './repository.ts'
import { SessionCookie } from './session-cookie.ts'
import { SessionReader, type SessionLookup } from './session-reader.ts'
import { registerSessionWriter } from './session-writer.ts'
import { SessionWatcher, type WatchListener } from './watcher.ts'

export { Envelope } from './envelope.ts'
export type { CausedEnd, Session, SessionRecord } from './repository.ts'
export type { NamedSession, SessionCookie } from './session-cookie.ts'
export type { SessionLookup } from './session-reader.ts'
export { saveNewSession } from './session-writer.ts'
export { createSigner } from './signer.ts'
export { recordOf } from './token-record.ts'
export type { WatchListener } from './watcher.ts'

/** What a browser may do with its cookie. `tag`: what the log calls a session that is known and of no use. */
export type Authorization =
  /** Its access token is good. */
  | { readonly is: 'authorized'; readonly session: Session }
  | { readonly is: 'anonymous' }
  /** The session has just ended: by its limits, by a logout, or because its token was refused for good. */
  | { readonly is: 'ended'; readonly tag: string }
  | { readonly is: 'storeDown'; readonly cause: StoreUnavailable }
  /** The token needs a renewal that is not to be had now. It is worth trying again after so many ms. */
  | {
      readonly is: 'providerDown'
      readonly tag: string
      readonly cause: unknown
      readonly retryAfterMs: number
    }

/** What sessions are built on. */
export interface SessionDependencies {
  readonly store: Store
  readonly envelope: Envelope
  readonly provider: Provider
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

const ANONYMOUS: Authorization = { is: 'anonymous' }

/** The only door to sessions: authorizes a cookie, renews a token that was refused, ends sessions, and watches them. */
export class Sessions {
  readonly cookie: SessionCookie
  readonly #repository: SessionRepository
  readonly #reader: SessionReader
  readonly #watcher: SessionWatcher
  readonly #tokens: AccessTokens

  constructor(
    config: Pick<Config, 'cookies' | 'secrets' | 'session'>,
    { store, envelope, provider, metrics, log }: SessionDependencies,
  ) {
    const [tagSecret = ''] = config.secrets
    this.cookie = new SessionCookie(config.cookies, config.secrets)
    this.#repository = new SessionRepository(store, envelope, config.session, tagSecret)
    this.#reader = new SessionReader(this.cookie, this.#repository, store)
    this.#watcher = new SessionWatcher(this.#repository, this.#reader, store, {
      storeGraceMs: config.session.relayStoreGraceMs,
      keepAlive: config.session.relaysKeepSession,
    })
    const deps = { store, provider, metrics, log, sessions: this.#repository, reader: this.#reader }
    this.#tokens = new AccessTokens(deps)
    metrics.sessionStore.nearCache = () => this.#reader.nearCache
    this.#repository.onUnreplicatedEnd(() => metrics.unreplicatedEnds.inc())
    this.#repository.onEnd((key, reason, wasThere, by) => {
      if (!wasThere) return
      metrics.sessionsEnded.inc({ reason })
      log.info({ audit: 'session_ended', reason, session: this.tag(key), ...by }, 'session ended')
    })
  }

  /**
   * What the cookie of a request allows, with a token that is good for use. Counts as use of the session. Synchronous in
   * the steady state: the session is held near, and its token need not be renewed.
   */
  authorize(cookieHeader: string | undefined): Authorization | Promise<Authorization> {
    const found = this.#reader.use(cookieHeader)
    return found instanceof Promise ? found.then((later) => this.#authorize(later)) : this.#authorize(found)
  }

  /**
   * What is left after upstream refused the token of a session: the current one, a renewed one, or the end of the session.
   * @param mayRenew false when a renewed one was refused too, so that the session ends
   * @param by who asked for what was refused
   */
  renewAfterRefusal(session: Session, mayRenew: boolean, by?: Requester): Promise<Authorization> {
    return toAuthorization(session, this.#tokens.afterRefusal(session, mayRenew, by))
  }

  /** The session of a Cookie header, whatever its token. Not a use of it. */
  read(cookieHeader: string | undefined): SessionLookup | Promise<SessionLookup> {
    return this.#reader.read(cookieHeader)
  }

  /** A session as it is now, past what is held near. */
  reread({ id }: Session): Promise<SessionLookup> {
    return this.#reader.reload(id)
  }

  /** Hears once that a live session has ended, wherever it was ended. Returns how to stop; stopping twice is harmless. */
  watch(session: Session, listener: WatchListener): () => void {
    return this.#watcher.watch(session, listener)
  }

  /** Ends a session everywhere. True when it was still there. @throws StoreUnavailable */
  end(key: string, reason: CausedEnd, by?: Requester): Promise<boolean> {
    return this.#repository.end(key, reason, by)
  }

  /**
   * The same by its id, and revokes the very tokens that it held in the end. @throws StoreUnavailable
   * @param isProven false for an id that may be made up
   * @returns what it held; undefined when it was gone, or cannot be read here
   */
  async endById(
    id: string,
    reason: CausedEnd,
    isProven: boolean,
    by?: Requester,
  ): Promise<SessionRecord | undefined> {
    const record = await this.#repository.endById(id, reason, isProven, by)
    if (record !== undefined) this.revoke(record)
    return record
  }

  /** Revokes tokens that nobody will use any more. Nobody waits for it. */
  revoke(tokens: Pick<SessionRecord, 'accessToken' | 'refreshToken'>): void {
    this.#tokens.revoke(tokens)
  }

  /** The short name of a session in the log. */
  tag(key: string): string {
    return this.#repository.tag(key)
  }

  /** Lets routes in the scope of `fastify` make sessions, with {@link saveNewSession}. */
  registerWriter(fastify: FastifyInstance): Promise<void> {
    return registerSessionWriter(fastify, this.cookie, this.#repository)
  }

  #authorize(found: SessionLookup): Authorization | Promise<Authorization> {
    switch (found.is) {
      case 'none':
        return ANONYMOUS
      case 'storeDown':
        return found
      case 'live': {
        const { session } = found
        return this.#tokens.isGood(session)
          ? { is: 'authorized', session }
          : toAuthorization(session, this.#tokens.renewed(session))
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
