import { isExplained } from '../explained.ts'
import { slackMs, type Call, type History, type Socket } from '../history.ts'
import { subjectsOf } from '../subjects.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** A page waits so long for a response before that is a fault, too. */
const PATIENCE_MS = 3000
/** A pause is lifted on all instances within this time. */
const LIFTED_MS = 1000
/** A login that began so soon after an end of all sessions may be taken for an earlier one. */
const ENDS_LOGINS_MS = 1000
/** The share of a window that has to be used before calls are refused for it. */
const USED = 0.25
/** An equal part is so many calls in a window at least. While others are present, nobody is promised more. */
const LEAST_PART = 2
/** What a page is told because its session has ended. */
const ENDED: ReadonlySet<string> = new Set(['login_required', 'session_expired'])

/** Trouble stays with whom it belongs. */
export const othersAreServed: ProductPromise = {
  name: 'others-are-served',
  sentence: 'Each user whose peers and session are well is served, and soon.',
  isTimed: true,
  check(history) {
    const { calls, sockets } = history
    return {
      judged: calls.flatMap(({ until }) => until ?? []).concat(sockets.flatMap(({ closedAt }) => closedAt ?? [])),
      violations: calls
        .flatMap((call) => unserved(history, call))
        .concat(sockets.flatMap((each) => lost(history, each))),
    }
  },
}

function unserved(history: History, call: Call): Violation[] {
  const { user, kind, path, key, result, at, until, instance } = call
  if (until === undefined) return []
  const lateMs = until - at - slackMs(history, at, until, instance)
  const isServed = result === 'ok' && lateMs <= PATIENCE_MS
  if (isServed || isExplained(history, call) || isExpected(history, call)) return []
  const what = key === undefined ? path : `order ${key}`
  const seen = `${user}: ${kind} ${what} by ${instance === undefined ? 'the balancer' : `instance ${instance}`} got ${result} after ${Math.round(until - at)} ms`
  return [{ at: until, seen }]
}

/** What somebody has asked for, or what became of an earlier attempt that a fault explains. */
function isExpected(history: History, call: Call): boolean {
  const { user, at, until = Infinity, result, session, key } = call
  if (ENDED.has(result)) return hasEnded(history, session, until)
  if (result === 'login_failed') return isBeingEnded(history, call)
  if (result === 'orders_paused') return isPaused(history, call)
  if (result === 'upstream_budget') return isUsed(history, at, until) || hasHadPart(history, call)
  const earlier = history.calls.filter(
    (each) => key !== undefined && each.key === key && each.user === user && each !== call && each.at < until,
  )
  if (result === 'idempotency_in_progress')
    return earlier.some((each) => (each.until ?? Infinity) > at || isExplained(history, each))
  return result === 'outcome_unknown' && earlier.some((each) => isExplained(history, each))
}

/** Who ends all sessions of a user ends a login that is under way, too. */
function isBeingEnded({ endings }: History, { user, at, until = Infinity }: Call): boolean {
  const all = endings.filter((each) => each.by === 'operator' && each.user === user && each.askedAt < until)
  return all.some(({ confirmedAt = Infinity }) => at < confirmedAt + ENDS_LOGINS_MS)
}

/** Whether orders of all users are paused, or those of the user of a session; the instance may not know whose it is. */
function isPaused(history: History, { session, instance, at, until = Infinity }: Call): boolean {
  const on = history.pauses.filter(({ askedAt, liftedAt = Infinity }) => askedAt < until && at < liftedAt + LIFTED_MS)
  if (on.length === 0 || on.some(({ subject }) => subject === undefined)) return on.length > 0
  const own = subjectsOf(history).get(session ?? '')
  return (
    own === undefined ||
    !isIdentified(history, { session, instance, until }) ||
    on.some(({ subject }) => subject === own)
  )
}

/** Whether upstream had told whose a session is: at its login, which all instances know, or later to this instance. */
function isIdentified({ calls, executed }: History, { session, instance, until = Infinity }: Partial<Call>): boolean {
  const begunAt = calls.find(({ began }) => began !== undefined && began === session)?.until ?? -Infinity
  const asked = executed.filter((each) => each.session === session && each.response.includes('"user_id"'))
  return asked.some((each) => each.at < begunAt || (each.at < until && each.instance === instance))
}

/** Whether much of the upstream budget is used: instances hold tokens, and each class has a share. */
function isUsed({ budgets, executed }: History, from: number, to: number): boolean {
  return budgets.some(({ calls, windowMs }) => {
    const used = executed.filter(({ sentAt }) => sentAt > from - windowMs && sentAt <= to).length
    return used >= calls * USED
  })
}

/** Whether its user has had an equal part of the shortest window. */
function hasHadPart({ budgets, calls }: History, { user, at, until = Infinity }: Call): boolean {
  const windowMs = Math.min(...budgets.map((each) => each.windowMs))
  const had = calls.filter((each) => each.user === user && each.result === 'ok' && (each.until ?? Infinity) <= until)
  return had.filter((each) => each.at > at - windowMs).length >= LEAST_PART
}

function hasEnded({ endings }: History, session: string | undefined, before: number): boolean {
  return session === undefined || endings.some((each) => each.session === session && each.askedAt < before)
}

function lost(history: History, socket: Socket): Violation[] {
  const { user, session, instance, kind, closedAt, closed, isClosedByPage } = socket
  if (closedAt === undefined || isClosedByPage || closed === undefined) return []
  if (closed.code === 4401 && hasEnded(history, session, closedAt)) return []
  const result = closed.reason.split(';')[0] ?? ''
  if (isExplained(history, { user, instance, kind: 'socket', at: closedAt, until: closedAt, result })) return []
  return [
    {
      at: closedAt,
      seen: `${user}: the ${kind} socket by instance ${instance} closed with ${closed.code} ${closed.reason}`,
    },
  ]
}
