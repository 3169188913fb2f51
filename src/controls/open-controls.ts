import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { Registry } from 'prom-client'
import type { Envelope, Session, Sessions, Subjects } from '../sessions/index.ts'
import type { ConfirmableWrites, Store } from '../store/store.ts'
import { Controls } from './controls.ts'

interface OpenDependencies {
  readonly store: Store
  readonly confirmed: ConfirmableWrites
  readonly envelope: Envelope
  readonly sessions: Sessions
  /** Absent where sessions have no subject. */
  readonly subjects: Subjects | undefined
  readonly registry: Registry
  /** Names this instance for operators. */
  readonly instance: string
  readonly log: FastifyBaseLogger
}

/** Makes the controls of a server whose operators have a token. They are read for the first time when they are opened. */
export async function createControls({ sessions, subjects, ...deps }: OpenDependencies): Promise<Controls> {
  const index = await deps.store.openIndex()
  const identify = async (session: Session, mayRepeat = true): Promise<string | undefined> => {
    if (subjects === undefined) return undefined
    try {
      // It may be hours since the session was read for a socket, and its token was good.
      const found = await sessions.reauthorize(session)
      if (found.is !== 'authorized') return undefined
      const { subject, accessToken } = found.session.record
      const isCurrent = (): boolean => sessions.isCurrent(found.session)
      const consequence = 'the orders of a session stay paused'
      const asker = { id: randomUUID(), log: deps.log, consequence, conditions: { session: isCurrent } }
      const asked = subject ?? (await subjects.identity?.ask(accessToken, asker))
      return asked === undefined && mayRepeat && !isCurrent() ? await identify(session, false) : asked
    } catch (error) {
      deps.log.error({ err: error }, 'a session could not be identified')
      return undefined
    }
  }
  return new Controls({ ...deps, index, identify: (session) => identify(session) })
}
