import type { FastifyBaseLogger } from 'fastify'
import type { Requester } from '../http/requester.ts'
import { isSubject, type Sessions, type Subjects, type SubjectSession } from '../sessions/index.ts'
import { StoreUnavailable } from '../store/store.ts'
import { audit } from '../telemetry/audit/audit.ts'

/** What an operator asks for. */
export interface AdminOrder {
  readonly is: 'list' | 'end'
  readonly subject: string
  /** Names the session, if only one is meant. */
  readonly tag?: string
  readonly requester: Requester
}

/** What became of an {@link AdminOrder}. It crosses the channel between processes, so it is plain data. */
export type AdminOutcome =
  | { readonly is: 'listed'; readonly sessions: readonly SubjectSession[] }
  | { readonly is: 'ended'; readonly count: number }
  /** Nobody can have this subject. */
  | { readonly is: 'noSubject' }
  /** The next three: some of the sessions that were to end may be left. */
  | { readonly is: 'storeDown' }
  /** No worker answers, or the server is still starting. */
  | { readonly is: 'noWorker' }
  | { readonly is: 'failed' }

/** Carries out an order, in this process or in a worker. Never rejects. */
export type CarryOut = (order: AdminOrder) => Promise<AdminOutcome>

/**
 * Makes the function that lists and ends the sessions of subjects for operators. It writes an audit line for each order, also for
 * one that fails half-way.
 */
export function sessionAdmin(sessions: Sessions, subjects: Subjects, log: FastifyBaseLogger): CarryOut {
  const list = async ({ subject, requester }: AdminOrder): Promise<AdminOutcome> => {
    const listed = await subjects.list(subject)
    const who = { subject: sessions.subjectTag(subject), ...requester }
    audit(log, 'sessions_listed', { sessions: listed.length, ...who })
    return { is: 'listed', sessions: listed }
  }
  const end = async ({ subject, tag, requester }: AdminOrder): Promise<AdminOutcome> => {
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
  return async (order) => {
    if (!isSubject(order.subject)) return { is: 'noSubject' }
    try {
      return await (order.is === 'list' ? list(order) : end(order))
    } catch (error) {
      if (error instanceof StoreUnavailable) return { is: 'storeDown' }
      log.error({ err: error }, 'an order of an operator failed')
      return { is: 'failed' }
    }
  }
}
