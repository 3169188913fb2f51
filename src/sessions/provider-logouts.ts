import { nameOf, type LoginIdentity } from '../oauth/login-identity.ts'
import type { LogoutToken } from '../oauth/logout-tokens.ts'
import type { EntryState } from '../store/session-index.ts'
import type { Cause, IndexedSession, Place, SubjectIndex } from './subject-index.ts'

interface Parts {
  readonly bySubject: SubjectIndex
  /** The same sessions by their sessions at the provider. */
  readonly bySid: SubjectIndex
  /** Whether a logout of one session at the provider ends those of the subject that know no sid. */
  readonly endsWithoutSid: boolean
}

/**
 * Ends the sessions that the provider has logged out (OpenID Connect Back-Channel Logout §2.7): those of one of its own sessions
 * (sid), or those of a user (sub) that are older than the logout. As in a logout everywhere a note is left first, so that
 * a login which is finishing at that moment either is found or sees the note.
 */
export class ProviderLogouts {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** A place for a new session in the index by sid; undefined for a session that knows no sid. */
  newPlace({ iss, sid }: LoginIdentity): Place | undefined {
    return sid === undefined ? undefined : this.#parts.bySid.newPlace(nameOf(iss, sid))
  }

  /** Enters a session before it is created. @throws StoreUnavailable */
  async enlist(
    { iss, sid }: LoginIdentity,
    place: Place | undefined,
    session: IndexedSession,
    endsAt: number,
  ): Promise<void> {
    if (sid !== undefined && place !== undefined) await this.#parts.bySid.add(nameOf(iss, sid), place, session, endsAt)
  }

  /**
   * Whether the provider has not logged a new session out.
   * @param sid where the index by sid has it; undefined for a session that knows no sid
   * @param endedUntil what the index by subject says of it
   * @param loginAgeMs tells how long ago its login began, or a little more
   * @throws StoreUnavailable
   */
  async mayLive(
    issuedAt: number,
    sid: Place | undefined,
    { endedUntil }: EntryState,
    loginAgeMs: () => number,
  ): Promise<boolean> {
    if (issuedAt <= endedUntil.issued) return false
    if (sid === undefined) return issuedAt > endedUntil.sidless
    const { isListed, endedAgoMs = Infinity } = await this.#parts.bySid.look(sid)
    // A session at the provider that has ended has no later logins. One that has them goes on, whatever the provider said.
    return isListed && loginAgeMs() < endedAgoMs
  }

  /** @returns how many sessions have ended @throws StoreUnavailable when some may be left; the same logout then ends them */
  async end({ subject, sid, issuedAt }: LogoutToken, requester: Cause['requester']): Promise<number> {
    const { bySubject, bySid, endsWithoutSid } = this.#parts
    const by = { reason: 'revoked', requester } as const
    const ends: Promise<number>[] = []
    if (sid !== undefined) ends.push(bySid.endAll(sid, by))
    if (subject !== undefined && (sid === undefined || endsWithoutSid)) {
      const mark = sid === undefined ? 'issued' : 'sidless'
      ends.push(bySubject.endIssued(subject, mark, issuedAt, { ...by, subject }))
    }
    return (await Promise.all(ends)).reduce((sum, ended) => sum + ended, 0)
  }
}
