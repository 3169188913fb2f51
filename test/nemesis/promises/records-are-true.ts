import { faultsDuring } from '../explained.ts'
import type { Ending, History } from '../history.ts'
import type { AuditLine } from '../states.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** Faults that lose lines of a log, or what was to be recorded, or the names of sessions. */
const LOSES = /kill|secrets|emptied|flushed|late-replicas|failed-over|restarted/
/** Faults that bring back a session whose end was recorded, or lose that record, so that it ends once more. */
const UNDOES = /late-replicas|failed-over|flushed|emptied/
/** An instance that is killed or stands still so soon after it has recorded an end may not have said so, and another one records it again. */
const UNSAID_MS = 1000
/** All instances have a new secret by then. */
const RENAMED_MS = 17_000

/** Who has asked for an end with such a reason. */
const ASKING: Readonly<Record<string, readonly Ending['by'][]>> = {
  logout: ['user'],
  revoked: ['operator', 'provider'],
}

/** The audit log has what happened, once, and nothing else. */
export const recordsAreTrue: ProductPromise = {
  name: 'records-are-true',
  sentence:
    'Each login and each end of a session that was confirmed has one audit line with the true reason, and each change of the controls has one.',
  isTimed: false,
  check(history) {
    const { audits } = history
    // They are known at the end.
    if (audits.length === 0) return { judged: [], violations: [] }
    const ended = audits.filter(({ audit }) => audit === 'session_ended')
    const violations = [
      ...(isUndone(history) ? [] : twice(history, ended)),
      ...(isLossy(history) ? [] : missing(history, ended)),
    ]
    return { judged: ended.map(({ at }) => at), violations: violations.concat(untrueReasons(history, ended)) }
  },
}

const isLossy = (history: History): boolean => faultsDuring(history, 0, Infinity).some(({ name }) => LOSES.test(name))

const isUndone = (history: History): boolean => faultsDuring(history, 0, Infinity).some(({ name }) => UNDOES.test(name))

function twice({ faults }: History, ended: readonly AuditLine[]): Violation[] {
  const halts = faults.filter(({ name }) => /kill|stopped/.test(name))
  const isSaid = ({ at }: AuditLine): boolean => halts.every(({ from }) => Math.abs(from - at) > UNSAID_MS)
  return [...Map.groupBy(ended.filter(isSaid), ({ session }) => session)].flatMap(([session, [first, second]]) => {
    if (first === undefined || second === undefined) return []
    const times = `${Math.round(first.at)} ms (${first.reason}) and ${Math.round(second.at)} ms (${second.reason})`
    return [{ at: second.at, seen: `the end of the session that logs call ${session} was recorded twice: at ${times}` }]
  })
}

/** Whose session a name in the log means: the line of the login has the request with which the page came back. */
function namesOf({ calls, audits }: History): Map<string, string> {
  const logins = new Map(
    audits.flatMap(({ audit, requestId, session }) => (audit === 'login' ? [[requestId, session]] : [])),
  )
  return new Map(
    calls.flatMap(({ kind, began, requestId }) => {
      const name = kind === 'login' || kind === 'signup' ? logins.get(requestId) : undefined
      return began === undefined || name === undefined ? [] : [[began, name]]
    }),
  )
}

function missing(history: History, ended: readonly AuditLine[]): Violation[] {
  const names = namesOf(history)
  const logins = history.calls.flatMap(({ user, began, until = 0 }) =>
    began === undefined || names.has(began)
      ? []
      : [{ at: until, seen: `no audit line says that ${user} has logged in` }],
  )
  const ends = history.endings.flatMap((ending): Violation[] => {
    const { user, session, confirmedAt } = ending
    const name = names.get(session)
    if (confirmedAt === undefined || name === undefined || isOver(history, ending) || isRenamed(history, ending))
      return []
    if (ended.some((each) => each.session === name)) return []
    return [
      { at: confirmedAt, seen: `no audit line says that a session of ${user} has ended, though that was confirmed` },
    ]
  })
  return logins.concat(ends, changes(history))
}

/** Whether the time of a session was over before somebody has asked for its end. */
function isOver({ endings }: History, { session, confirmedAt = 0 }: Ending): boolean {
  return endings.some((each) => each.by === 'limit' && each.session === session && each.askedAt < confirmedAt)
}

/** Whether logs may have had another name for a session at its end than at its login. */
function isRenamed({ rotations, calls }: History, { session, confirmedAt = 0 }: Ending): boolean {
  const begunAt = calls.find(({ began }) => began === session)?.until ?? 0
  return rotations.some((at) => at <= confirmedAt && begunAt < at + RENAMED_MS)
}

function changes({ audits, pauses }: History): Violation[] {
  const confirmed = pauses.flatMap(({ confirmedAt, liftedAt }) =>
    [confirmedAt, liftedAt].filter((at) => at !== undefined),
  )
  const recorded = audits.filter(({ audit, control }) => audit === 'controls_changed' && control === 'orders').length
  if (recorded >= confirmed.length) return []
  const seen = `operators have changed the pause of orders ${confirmed.length} times, and the audit log has ${recorded} lines`
  return [{ at: Math.max(...confirmed), seen }]
}

/**
 * A reason is somebody's wish. A logout, here or at the provider, ends all that the logins of its browser have begun, also what an
 * instance with another secret could not replace.
 */
function untrueReasons(history: History, ended: readonly AuditLine[]): Violation[] {
  const grants = new Map([...namesOf(history)].map(([grant, name]) => [name, grant]))
  return ended.flatMap(({ at, session: name, reason }) => {
    const session = grants.get(name ?? '')
    const asking = ASKING[reason ?? '']
    if (session === undefined || asking === undefined) return []
    const user = history.calls.find(({ began }) => began === session)?.user
    const isAsked = history.endings.some(
      (each) =>
        asking.includes(each.by) && (each.session === session || (each.by !== 'operator' && each.user === user)),
    )
    return isAsked ? [] : [{ at, seen: `a session has ended with the reason ${reason}, and nobody has asked for that` }]
  })
}
