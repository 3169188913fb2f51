import type { FastifyBaseLogger } from 'fastify'
import type { Controls } from '../controls/controls.ts'
import type { Sessions, Subjects } from '../sessions/index.ts'
import { controlsAdmin, type ControlsCommand, type ControlsOutcome } from './controls-admin.ts'
import { sessionAdmin, type SubjectCommand, type SubjectOutcome } from './session-admin.ts'

/** A command of an operator. It crosses the channel between processes, so it is plain data. */
export type OperatorCommand = SubjectCommand | ControlsCommand

/** The outcome of an {@link OperatorCommand}, which crosses the channel too. */
export type OperatorOutcome =
  | SubjectOutcome
  | ControlsOutcome
  /** No worker answers, or the server is still starting. */
  | { readonly is: 'noWorker' }
  | { readonly is: 'failed' }

/**
 * Runs a command, in this process or in a worker. Never rejects.
 * @param isWanted asked before each worker that is to do it; always by default
 */
export type RunCommand = (command: OperatorCommand, isWanted?: () => Promise<boolean>) => Promise<OperatorOutcome>

/** Makes the function that does in this process what operators ask. */
export function operatorCommands(deps: {
  readonly sessions: Sessions
  /** Absent where sessions have no subject. */
  readonly subjects: Subjects | undefined
  /** Absent where operators have no token. */
  readonly controls: Controls | undefined
  readonly log: FastifyBaseLogger
}): RunCommand {
  const { sessions, subjects, controls, log } = deps
  const runSessions = subjects && sessionAdmin(sessions, subjects, log)
  const runControls = controls && controlsAdmin(controls, { sessions, hasSubjects: subjects !== undefined, log })
  return async (command) => {
    try {
      if (command.is === 'show' || command.is === 'change') return (await runControls?.(command)) ?? { is: 'noWorker' }
      return (await runSessions?.(command)) ?? { is: 'noSubjects' }
    } catch (error) {
      log.error({ err: error }, 'an order of an operator failed')
      return { is: 'failed' }
    }
  }
}
