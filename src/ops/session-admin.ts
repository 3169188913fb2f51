import type { FastifyBaseLogger } from 'fastify'
import type { Requester } from '../http/requester.ts'
import { isSubject, type Sessions, type Subjects, type SubjectSession } from '../sessions/index.ts'
import { StoreUnavailable } from '../store/store.ts'
import { audit } from '../telemetry/audit.ts'

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

/** Lists and ends the sessions of subjects for operators. Writes an audit line for each order, also for one that fails half-way. */
export class SessionAdmin {
  readonly #sessions: Sessions
  readonly #subjects: Subjects
  readonly #log: FastifyBaseLogger

  constructor(sessions: Sessions, subjects: Subjects, log: FastifyBaseLogger) {
    this.#sessions = sessions
    this.#subjects = subjects
    this.#log = log
  }

  readonly carryOut: CarryOut = async (order) => {
    if (!isSubject(order.subject)) return { is: 'noSubject' }
    try {
      return order.is === 'list' ? await this.#list(order) : await this.#end(order)
    } catch (error) {
      if (error instanceof StoreUnavailable) return { is: 'storeDown' }
      this.#log.error({ err: error }, 'an order of an operator failed')
      return { is: 'failed' }
    }
  }

  async #list({ subject, requester }: AdminOrder): Promise<AdminOutcome> {
    const sessions = await this.#subjects.list(subject)
    const who = { subject: this.#sessions.subjectTag(subject), ...requester }
    audit(this.#log, 'sessions_listed', { sessions: sessions.length, ...who })
    return { is: 'listed', sessions }
  }

  async #end({ subject, tag, requester }: AdminOrder): Promise<AdminOutcome> {
    const who = { session: tag, subject: this.#sessions.subjectTag(subject), ...requester }
    const by = { reason: 'revoked', requester } as const
    const ending =
      tag === undefined ? this.#subjects.endAll(subject, by) : this.#subjects.endTagged(subject, tag, by).then(Number)
    const ended = await ending.catch((cause: unknown) => {
      const message = 'sessions could not be revoked'
      audit(this.#log, 'sessions_revoked', { outcome: 'incomplete', cause, ...who }, { message })
      throw cause
    })
    audit(this.#log, 'sessions_revoked', { ended, ...who })
    return { is: 'ended', count: ended }
  }
}
