import { faultsDuring } from '../explained.ts'
import { slackMs, type Call, type Ending, type History } from '../history.ts'
import { PREVIOUS } from '../faults/previous-version.ts'
import type { ProductPromise } from '../promise.ts'

/** The provider is asked in the background, and for as long as it takes to answer. */
const REVOKED_MS = 10_000
/** Whoever repeats a logout takes over what an instance has not done that was killed (docs/reference.md, The session). */
const TAKEN_OVER_MS = 6000
/** Who has lost what is to be revoked, cannot read it, or cannot reach the provider, revokes nothing. */
const PREVENTS = /provider|token|refresh|stopped|rolled|emptied|flushed|late-replicas|failed-over|restarted|secrets/

/** The tokens of a session end with its logout. */
export const endedIsRevoked: ProductPromise = {
  name: 'ended-is-revoked',
  sentence:
    'A logout that was confirmed has all tokens of its session revoked, although replies of Redis were lost, or an instance was killed and the page has repeated the logout.',
  isTimed: true,
  check(history) {
    const { endings, calls } = history
    const now = Math.max(0, ...calls.slice(-1).map(({ at }) => at))
    const due = endings.flatMap((ending) => {
      const { by, session, askedAt, confirmedAt, revokedAt = Infinity } = ending
      if (by !== 'user' || confirmedAt === undefined) return []
      const at = dueAt(history, ending, confirmedAt, now)
      const isPrevented =
        isOfOther(history, ending, confirmedAt) ||
        faultsDuring(history, askedAt, at).some(({ name }) => PREVENTS.test(name)) ||
        isForgotten(history, ending, at)
      return at > now || isPrevented ? [] : [{ at, session, isRevoked: revokedAt <= at }]
    })
    return {
      judged: due.map(({ at }) => at),
      violations: due
        .filter(({ isRevoked }) => !isRevoked)
        .map(({ at, session }) => ({ at, seen: `tokens of session ${session} could be used long after its logout` })),
    }
  },
}

function dueAt(history: History, ending: Ending, confirmedAt: number, now: number): number {
  const { askedAt } = ending
  const { until = confirmedAt } = lastLogout(history, ending) ?? {}
  const isKilled = history.kills.some(({ at }) => at > askedAt && at < until + TAKEN_OVER_MS)
  const begunAt = isKilled ? Math.max(confirmedAt, until) + TAKEN_OVER_MS : confirmedAt
  return begunAt + REVOKED_MS + slackMs(history, askedAt, now)
}

/** The last time that its page has asked for the end of a session, and was told of it. */
function lastLogout({ calls }: History, { session }: Ending): Call | undefined {
  return calls.findLast((call) => call.kind === 'logout' && call.session === session && call.result === 'ok')
}

/** Whether an instance that was to revoke the tokens was killed, and nobody has asked again. */
function isForgotten(history: History, ending: Ending, before: number): boolean {
  const { at = ending.askedAt, instance } = lastLogout(history, ending) ?? {}
  const killed = history.kills.filter((kill) => kill.at > ending.askedAt && kill.at < before)
  const mayBeOlder = faultsDuring(history, ending.askedAt, before).some(({ name }) => name === PREVIOUS)
  if (mayBeOlder && killed.length > 0) return true
  // The one that was asked last takes over from all others.
  return killed.some((kill) => kill.at > at && (instance ?? kill.instance) === kill.instance)
}

/** Whether the session had ended before in another way, or a login in another tab has another session, which is the one that ends. */
function isOfOther({ calls, endings }: History, { user, session, askedAt }: Ending, confirmedAt: number): boolean {
  if (endings.some((each) => each.session === session && each.by !== 'user' && each.askedAt < confirmedAt)) return true
  return calls.some((call) => {
    const isLogin = call.user === user && (call.kind === 'login' || call.kind === 'signup')
    return isLogin && call.at < confirmedAt && (call.until ?? Infinity) > askedAt
  })
}
