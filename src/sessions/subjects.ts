import type { Registry } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { Requester } from '../http/requester.ts'
import type { LoginIdentity } from '../oauth/login-identity.ts'
import { providerSessionKey } from '../store/keys.ts'
import { ENDED_MS } from '../store/session-index.ts'
import type { SharedState, StoreData } from '../store/store.ts'
import { createIdentityMetrics } from '../telemetry/identity-metrics.ts'
import type { Budget } from '../upstream/budget/admission.ts'
import { createIdentityClient } from '../upstream/rest-clients.ts'
import type { Envelope } from './envelope.ts'
import { eachOf, endListed, type Cause } from './end-listed.ts'
import { Identity } from './identity.ts'
import { LiveSessions } from './live-sessions.ts'
import { ProviderLogouts, type EnlistedIdentity } from './provider-logouts.ts'
import type { SessionRepository } from './repository.ts'
import { SubjectIndex, type ListedSession, type Place } from './subject-index.ts'

/** More sessions of one subject than this are never kept: the index of a subject has a bounded size. */
const MAX_SESSIONS = 1000
/** After this many logins the entries of sessions that are gone are removed, even if no limit is reached. */
const TIDY_EVERY = 100
/** How much two clocks may disagree on the length of a time: one that is being corrected runs at another speed. */
const DRIFT = { factor: 1.001, ms: 5 }

/** A login that is about to create the session of a subject. */
export interface NewSession {
  readonly subject: string
  /** Store key of the session. */
  readonly key: string
  /** Absolute limit of the session (epoch ms). */
  readonly endsAt: number
  readonly client: string
  /** With OpenID Connect. */
  readonly identity?: LoginIdentity | undefined
}

/** A session in the index. */
export interface Enlisted {
  readonly subject: string
  readonly place: Place
  /** The number of entries at that moment, this one included. */
  readonly count: number
  readonly ofProvider?: EnlistedIdentity | undefined
}

/** The part of a session that an operator may know. Times are epoch ms. */
export interface SubjectSession {
  readonly tag: string
  readonly startedAt: number
  /** Up to a minute early, never late; undefined where it is not known. */
  readonly lastUsedAt: number | undefined
  readonly client: string
}

/** What subjects need besides the configuration. */
export interface SubjectDependencies {
  readonly store: SharedState & StoreData
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
  }

  /** Enters a session before it is created, so that a logout of all sessions finds it. @throws StoreUnavailable */
  async enlist({ subject, key, endsAt, client, identity }: NewSession): Promise<Enlisted> {
    const { sid, issuedAt } = identity ?? {}
    const isOfProvider = issuedAt !== undefined && { issuedAt, hasSid: sid !== undefined }
    const session = { tag: this.#sessions.tag(key), startedAt: Date.now(), client, key, ...isOfProvider }
    const [added, ofProvider] = await Promise.all([
      this.#index.add(subject, session, endsAt),
      identity && this.logouts?.enlist(identity, { ...session, subject }, endsAt),
    ])
    return { subject, ...added, ofProvider }
  }

  /** Takes back {@link enlist}, since the session was not created. @throws StoreUnavailable */
  async withdraw(enlisted: Enlisted): Promise<void> {
    const { ofProvider } = enlisted
    await Promise.all([this.#index.remove([enlisted]), ofProvider && this.logouts?.withdraw(ofProvider)])
  }

  /**
   * Whether a session may live. Ask this after it was created: from then on, a logout of all sessions of the subject finds it.
   * False if they have been ended since its login began, or if the provider has logged it out.
   * @param loginAgeMs tells how long ago its login began, by the clock of this process that says more
   * @throws StoreUnavailable
   */
  async mayLive({ place, ofProvider }: Enlisted, loginAgeMs: () => number): Promise<boolean> {
    const state = await this.#index.look(place)
    const { isListed, endedAgoMs = Infinity } = state
    if (ofProvider !== undefined && (await this.logouts?.mayLive(ofProvider, state)) !== true) return false
    // The ages of two events are compared, and not their times, which different clocks would have measured.
    const ageMs = loginAgeMs() * DRIFT.factor + DRIFT.ms
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
    await this.#endSome(subject, surplus, { reason: 'replaced', requester })
  }

  /** The live sessions of a subject, the oldest first. @throws StoreUnavailable */
  async list(subject: string): Promise<SubjectSession[]> {
    const sessions: SubjectSession[] = []
    await eachOf(await this.#index.list(subject), async (listed) => {
      const stored = await this.#store.readUntracked(listed.key)
      if (stored === undefined) return
      const { tag, startedAt, client } = listed
      sessions.push({ tag, startedAt, lastUsedAt: this.#lastUse(listed, stored.expiresAt), client })
    })
    return sessions.toSorted((one, other) => one.startedAt - other.startedAt)
  }

  /** The number of live sessions of a subject besides one, a few seconds ago. @throws StoreUnavailable */
  async countOthers(subject: string, ownKey: string): Promise<number> {
    return (await this.#live.keysOf(subject, ownKey)).size - 1
  }

  /**
   * Ends all sessions of a subject, including the sessions that are just being created.
   * @param exceptKey store key of a session that the caller ends itself, last, so that it can repeat this after a failure
   * @returns how many sessions there were
   * @throws StoreUnavailable when some may be left
   */
  async endAll(subject: string, by: Cause, exceptKey?: string): Promise<number> {
    const listed = await this.#index.endAll(subject)
    const others = listed.filter(({ key }) => key !== exceptKey)
    // The ends of the sessions wait for a replica too, but there may be none, or none on this server of a Cluster.
    const noted = this.#index.keysOf(subject).map((key) => this.#sessions.replicate(key))
    const [ended] = await Promise.all([endListed(this.#sessions, this.#index, others, { ...by, subject }), ...noted])
    return ended
  }

  /** Ends the session of a subject that has this tag. Returns whether there was one. @throws StoreUnavailable */
  async endTagged(subject: string, tag: string, by: Cause): Promise<boolean> {
    const listed = await this.#index.list(subject)
    // Since a roll of secrets the log may name it by another tag than the index does.
    const meant = listed.filter((each) => each.tag === tag || this.#sessions.tag(each.key) === tag)
    return (await this.#endSome(subject, meant, by)) > 0
  }

  /**
   * The earliest time at which a use moved the idle limit to where it is. Undefined once that has reached the end of the
   * session: later uses leave it there.
   */
  #lastUse({ startedAt, endsAt }: ListedSession, idleEndsAt: number): number | undefined {
    const { limits, stepMs } = this.#sessions
    return idleEndsAt >= endsAt ? undefined : Math.max(startedAt, idleEndsAt - limits.idleMs - stepMs)
  }

  /** Ends some sessions of a subject. */
  async #endSome(subject: string, sessions: readonly ListedSession[], by: Cause): Promise<number> {
    // Noted first: a login among them that has yet to create its session then sees that it must not live.
    await this.#index.end(sessions)
    return endListed(this.#sessions, this.#index, sessions, { ...by, subject })
  }
}

/** Creates the parts that only sessions with a subject need. */
export async function createSubjects(
  { identity, oauth: { oidc }, secrets, upstream }: Pick<Config, 'identity' | 'oauth' | 'secrets' | 'upstream'>,
  { store, envelope, sessions, budget, registry }: SubjectDependencies,
): Promise<Subjects> {
  const stored = await store.openIndex()
  const index = new SubjectIndex(stored, envelope, secrets)
  if (identity !== undefined) {
    const client = createIdentityClient(upstream, budget)
    const asks = new Identity(client, { upstream, identity }, createIdentityMetrics(registry))
    return new Subjects(asks, index, sessions, store, identity.maxSessions)
  }
  const { maxSessions = Infinity, endsWithoutSid = false } = oidc ?? {}
  const bySid = new SubjectIndex(stored, envelope, secrets, providerSessionKey)
  const logouts = new ProviderLogouts({ sessions, bySubject: index, bySid, endsWithoutSid })
  return new Subjects(undefined, index, sessions, store, maxSessions, logouts)
}
