import type { Registry } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { Requester } from '../http/requester.ts'
import type { LoginIdentity } from '../oauth/login-identity.ts'
import { providerSessionKey, sessionKey } from '../store/keys.ts'
import { ENDED_MS } from '../store/session-index.ts'
import type { Store, StoreData } from '../store/store.ts'
import { createIdentityMetrics } from '../telemetry/identity-metrics.ts'
import type { Budget } from '../upstream/budget/admission.ts'
import { createIdentityClient } from '../upstream/rest-clients.ts'
import type { Envelope } from './envelope.ts'
import { deviceOf } from './device.ts'
import { eachOf } from './each-of.ts'
import { Identity } from './identity.ts'
import { LiveSessions } from './live-sessions.ts'
import { OwnSessions, type LiveSession } from './own-sessions.ts'
import { ProviderLogouts } from './provider-logouts.ts'
import type { SessionRepository } from './repository.ts'
import { pageTag, type Session } from './session.ts'
import { SubjectIndex, type Cause, type ListedSession, type Place } from './subject-index.ts'
import { storeNow } from '../time/store-time.ts'

/** More sessions of one subject than this are never kept: the index of a subject has a bounded size. */
const MAX_SESSIONS = 1000
/** After this many logins the entries of sessions that are gone are removed, even if no limit is reached. */
const TIDY_EVERY = 100
/** How much two clocks may disagree on the length of a time: one that is being corrected runs at another speed. */
const DRIFT = { factor: 1.001, ms: 5 }

/** A login that is about to create the session of a subject. */
interface NewSession {
  readonly subject: string
  readonly id: string
  /** Absolute limit of the session (epoch ms). */
  readonly endsAt: number
  readonly client: string
  /** The User-Agent of the login. */
  readonly userAgent?: string | undefined
  /** With OpenID Connect. */
  readonly identity?: LoginIdentity | undefined
}

/** A session in the index. */
interface Enlisted {
  readonly subject: string
  readonly place: Place
  /** Where the index by sid has it. */
  readonly twin?: Place | undefined
  /** The number of entries at that moment, this one included. */
  readonly count: number
  /** When its ID token was issued (epoch s), where the provider can log it out. */
  readonly issuedAt: number | undefined
}

/** The part of a session that an operator may know. Times are epoch ms. */
export type SubjectSession = Pick<LiveSession, 'tag' | 'startedAt' | 'lastUsedAt' | 'client'>

/** Subjects need these besides the configuration. */
export interface SubjectDependencies {
  readonly store: StoreData & Pick<Store, 'openIndex'>
  readonly envelope: Envelope
  readonly sessions: SessionRepository
  readonly budget: Budget | undefined
  readonly registry: Registry
}

/** Learns the subjects of new sessions, and finds and ends the sessions of a subject. */
export class Subjects {
  /** Undefined where the ID token tells the subject. */
  readonly identity: Identity | undefined
  /** Undefined without OpenID Connect. */
  readonly logouts: ProviderLogouts | undefined
  /** For the pages of a subject. */
  readonly own: OwnSessions
  readonly #index: SubjectIndex
  readonly #sessions: SessionRepository
  readonly #store: StoreData
  readonly #maxSessions: number
  readonly #live: LiveSessions

  /** @param maxSessions of one subject; Infinity for no limit */
  constructor(
    identity: Identity | undefined,
    index: SubjectIndex,
    sessions: SessionRepository,
    store: StoreData,
    maxSessions: number,
    logouts?: ProviderLogouts,
  ) {
    this.identity = identity
    this.logouts = logouts
    this.#index = index
    this.#sessions = sessions
    this.#store = store
    this.#maxSessions = Math.min(maxSessions, MAX_SESSIONS)
    this.#live = new LiveSessions(index, store, sessions.limits.idleMs)
    this.own = new OwnSessions(index, store, (subject) => this.#read(subject))
  }

  /** Creates what only sessions with a subject need. */
  static async open(
    { identity, oauth: { oidc }, secrets, upstream }: Pick<Config, 'identity' | 'oauth' | 'secrets' | 'upstream'>,
    { store, envelope, sessions, budget, registry }: SubjectDependencies,
  ): Promise<Subjects> {
    const stored = await store.openIndex()
    const index = new SubjectIndex(stored, envelope, secrets, sessions)
    if (identity !== undefined) {
      const client = createIdentityClient(upstream, budget)
      const asks = new Identity(client, { upstream, identity }, createIdentityMetrics(registry))
      return new Subjects(asks, index, sessions, store, identity.maxSessions)
    }
    const { maxSessions = Infinity, endsWithoutSid = false } = oidc ?? {}
    const bySid = new SubjectIndex(stored, envelope, secrets, sessions, providerSessionKey)
    const logouts = new ProviderLogouts({ bySubject: index, bySid, endsWithoutSid })
    return new Subjects(undefined, index, sessions, store, maxSessions, logouts)
  }

  /** Enters a session before it is created, so that a logout of all sessions finds it. @throws StoreUnavailable */
  async enlist({ subject, id, endsAt, client, userAgent, identity }: NewSession): Promise<Enlisted> {
    const key = sessionKey(id)
    const { sid, issuedAt } = identity ?? {}
    const session = {
      tag: this.#sessions.tag(key),
      page: pageTag(id),
      device: deviceOf(userAgent),
      startedAt: storeNow(),
      client,
      key,
      ...(issuedAt !== undefined && { issuedAt, hasSid: sid !== undefined }),
    }
    const place = this.#index.newPlace(subject)
    const twin = identity && this.logouts?.newPlace(identity)
    try {
      const [count] = await Promise.all([
        this.#index.add(subject, place, { ...session, ...(twin && { twin }) }, endsAt),
        identity && this.logouts?.enlist(identity, twin, { ...session, subject, twin: place }, endsAt),
      ])
      return { subject, place, twin, count, issuedAt: this.logouts && issuedAt }
    } catch (error) {
      // One of the two entries may have been written.
      void this.withdraw({ place, twin })
      throw error
    }
  }

  /** Takes back {@link enlist}, since the session was not created: once the store is back, if it is away. Never rejects. */
  withdraw(enlisted: Pick<Enlisted, 'place' | 'twin'>): Promise<void> {
    return this.#sessions.takeBack(async () => {
      await this.#index.remove([enlisted])
      return false
    })
  }

  /**
   * Whether a session may live. Ask this after it was created: from then on, a logout of all sessions of the subject finds it.
   * False if they have been ended since its login began, or if the provider has logged it out.
   * @param loginAgeMs tells how long ago its login began, by the clock of this process that says more
   * @throws StoreUnavailable
   */
  async mayLive({ place, twin, issuedAt }: Enlisted, loginAgeMs: () => number): Promise<boolean> {
    const state = await this.#index.look(place)
    const { isListed, endedAgoMs = Infinity } = state
    // The ages of two events are compared, and not their times, which different clocks would have measured.
    const age = (): number => loginAgeMs() * DRIFT.factor + DRIFT.ms
    if (issuedAt !== undefined && (await this.logouts?.mayLive(issuedAt, twin, state, age)) !== true) return false
    const ageMs = age()
    return isListed && ageMs < endedAgoMs && ageMs < ENDED_MS
  }

  /**
   * Ends the oldest sessions of a subject that has more than it may have, now that a new one has begun.
   * @throws StoreUnavailable
   */
  async makeRoom({ subject, place, count }: Enlisted, requester: Requester): Promise<void> {
    if (count <= this.#maxSessions && count % TIDY_EVERY !== 0) return
    const listed = await this.#index.list(subject)
    const own = listed.findIndex((each) => each.place.id === place.id)
    if (own === -1) return
    // Logins that came later make room for themselves, unless they added to another key and have not seen this one.
    const rivals = listed.filter((each, at) => at < own || each.place.index !== place.index)
    const isLive = await this.#live.among(rivals)
    await this.#index.remove(rivals.filter((each) => !isLive(each)))
    const live = listed.filter((each, at) => at === own || isLive(each))
    // Among logins at the same moment, this one may be the oldest.
    const surplus = live.slice(0, Math.max(0, live.length - this.#maxSessions))
    await this.#index.end(surplus, { reason: 'replaced', requester, subject })
  }

  /** The live sessions of a subject, the oldest first. @throws StoreUnavailable */
  async list(subject: string): Promise<SubjectSession[]> {
    const live = await this.#read(subject)
    return live.map(({ tag, startedAt, lastUsedAt, client }) => ({ tag, startedAt, lastUsedAt, client }))
  }

  /** The number of live sessions of a subject besides one, a few seconds ago. @throws StoreUnavailable */
  async countOthers(subject: string, ownKey: string): Promise<number> {
    return (await this.#live.keysOf(subject, ownKey)).size - 1
  }

  /**
   * Ends all sessions of a subject, including the sessions that are just being created.
   * @param own a session that the caller ends itself, last. For a minute, the cookie of a live one is enough to repeat this after a failure.
   * @returns how many sessions there were
   * @throws StoreUnavailable when some may be left
   */
  async endAll(subject: string, by: Cause, own?: Session | Pick<Session, 'key'>): Promise<number> {
    const ended = await this.#index.endAll(subject, { ...by, subject }, own?.key)
    if (own !== undefined && 'record' in own) await this.#sessions.noteSubject(own)
    return ended
  }

  /** The subject of a session that has ended after {@link endAll}. @throws StoreUnavailable */
  ofEnded(id: string): Promise<string | undefined> {
    return this.#sessions.notedSubject(id)
  }

  /** Ends the session of a subject that has this tag. Returns whether there was one. @throws StoreUnavailable */
  async endTagged(subject: string, tag: string, by: Cause): Promise<boolean> {
    const listed = await this.#index.list(subject)
    // Since a roll of secrets the log may name it by another tag than the index does.
    const meant = listed.filter((each) => each.tag === tag || this.#sessions.tag(each.key) === tag)
    return (await this.#index.end(meant, { ...by, subject })) > 0
  }

  /** The live sessions of a subject, the oldest first. */
  async #read(subject: string): Promise<LiveSession[]> {
    const listed = await this.#index.list(subject)
    const idleEnds = new Map<string, number>()
    await eachOf(listed, async ({ key }) => {
      const stored = await this.#store.readUntracked(key)
      if (stored !== undefined) idleEnds.set(key, stored.expiresAt)
    })
    const live: LiveSession[] = []
    for (const each of listed) {
      const idleEndsAt = idleEnds.get(each.key)
      if (idleEndsAt !== undefined) live.push({ ...each, lastUsedAt: this.#lastUse(each, idleEndsAt) })
    }
    return live.toSorted((one, other) => one.startedAt - other.startedAt)
  }

  /**
   * The earliest time at which a use moved the idle limit to where it is. Undefined once that has reached the end of the
   * session: later uses leave it there.
   */
  #lastUse({ startedAt, endsAt }: ListedSession, idleEndsAt: number): number | undefined {
    const { limits, stepMs } = this.#sessions
    return idleEndsAt >= endsAt ? undefined : Math.max(startedAt, idleEndsAt - limits.idleMs - stepMs)
  }
}
