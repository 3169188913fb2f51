import { faultsDuring } from '../explained.ts'
import type { AuditLine, History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** Faults that lose lines of a log, or what was to be recorded. */
const LOSES = /kill|emptied|late-replicas|failover|restarted/
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
    const violations = [...twice(ended), ...(isLossy(history) ? [] : missing(history, ended))]
    return { judged: ended.map(({ at }) => at), violations: violations.concat(untrueReasons(history, ended)) }
  },
}

const isLossy = (history: History): boolean => faultsDuring(history, 0, Infinity).some(({ name }) => LOSES.test(name))

function twice(ended: readonly AuditLine[]): Violation[] {
  return [...Map.groupBy(ended, ({ session }) => session)].flatMap(([session, [, second]]) =>
    second === undefined
      ? []
      : [{ at: second.at, seen: `the end of the session that logs call ${session} was recorded twice` }],
  )
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
  const { calls, audits, endings, pauses } = history
  const names = namesOf(history)
  const logins = calls.flatMap(({ user, began, until = 0 }) =>
    began === undefined || names.has(began)
      ? []
      : [{ at: until, seen: `no audit line says that ${user} has logged in` }],
  )
  const ends = endings.flatMap(({ by, user, session, confirmedAt }) => {
    const name = names.get(session)
    const isOver = endings.some(
      (each) => each.by === 'limit' && each.session === session && each.askedAt < (confirmedAt ?? 0),
    )
    if (by === 'limit' || confirmedAt === undefined || name === undefined || isOver) return []
    if (ended.some((each) => each.session === name)) return []
    return [
      { at: confirmedAt, seen: `no audit line says that a session of ${user} has ended, though that was confirmed` },
    ]
  })
  const changes = pauses.flatMap(({ confirmedAt, liftedAt }) =>
    [confirmedAt, liftedAt].filter((at) => at !== undefined),
  )
  const recorded = audits.filter(({ audit, control }) => audit === 'controls_changed' && control === 'orders').length
  if (recorded >= changes.length) return [...logins, ...ends]
  const seen = `operators have changed the pause of orders ${changes.length} times, and the audit log has ${recorded} lines`
  return [...logins, ...ends, { at: Math.max(...changes), seen }]
}

/** A reason is somebody's wish. */
function untrueReasons(history: History, ended: readonly AuditLine[]): Violation[] {
  const grants = new Map([...namesOf(history)].map(([grant, name]) => [name, grant]))
  return ended.flatMap(({ at, session: name, reason }) => {
    const session = grants.get(name ?? '')
    const by = reason === 'logout' ? 'user' : reason === 'revoked' ? 'operator' : undefined
    if (session === undefined || by === undefined) return []
    const isAsked = history.endings.some((each) => each.session === session && each.by === by)
    return isAsked ? [] : [{ at, seen: `a session has ended with the reason ${reason}, and nobody has asked for that` }]
  })
}
