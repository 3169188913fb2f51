import type { FastifyBaseLogger } from 'fastify'
import type { Requester } from '../http/requester.ts'
import { isSubject, type Sessions, type Subjects, type SubjectSession } from '../sessions/index.ts'
import { StoreUnavailable } from '../store/store.ts'
import { audit } from '../telemetry/audit/audit.ts'

/** A command of an operator about the sessions of a subject. */
export interface SubjectCommand {
  readonly is: 'list' | 'end'
  readonly subject: string
  /** Names the session, if only one is meant. */
  readonly tag?: string
  readonly requester: Requester
}

/** The outcome of an {@link SubjectCommand}. */
export type SubjectOutcome =
  | { readonly is: 'listed'; readonly sessions: readonly SubjectSession[] }
  | { readonly is: 'ended'; readonly count: number }
  /** No user can have this subject. */
  | { readonly is: 'noSubject' }
  /** As after any other failure, some of the sessions that were to end may be left. */
  | { readonly is: 'storeDown' }

/**
 * Makes the function that lists and ends the sessions of subjects for operators. It writes an audit line for each command, also for
 * one that fails half-way.
 */
export function sessionAdmin(
  sessions: Sessions,
  subjects: Subjects,
  log: FastifyBaseLogger,
): (command: SubjectCommand) => Promise<SubjectOutcome> {
  const list = async ({ subject, requester }: SubjectCommand): Promise<SubjectOutcome> => {
    const listed = await subjects.list(subject)
    const who = { subject: sessions.subjectTag(subject), ...requester }
    audit(log, 'sessions_listed', { sessions: listed.length, ...who })
    return { is: 'listed', sessions: listed }
  }
  const end = async ({ subject, tag, requester }: SubjectCommand): Promise<SubjectOutcome> => {
    const who = { session: tag, subject: sessions.subjectTag(subject), ...requester }
    const by = { reason: 'revoked', requester } as const
    try {
      const ended =
        tag === undefined ? await subjects.endAll(subject, by) : Number(await subjects.endTagged(subject, tag, by))
      audit(log, 'sessions_revoked', { ended, ...who })
      return { is: 'ended', count: ended }
    } catch (cause) {
      const message = 'sessions could not be revoked'
      audit(log, 'sessions_revoked', { outcome: 'incomplete', cause, ...who }, { message })
      throw cause
    }
  }
  return async (command) => {
    if (!isSubject(command.subject)) return { is: 'noSubject' }
    try {
      return await (command.is === 'list' ? list(command) : end(command))
    } catch (error) {
      if (error instanceof StoreUnavailable) return { is: 'storeDown' }
      throw error
    }
  }
}
