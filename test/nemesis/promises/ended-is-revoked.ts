import { faultsDuring } from '../explained.ts'
import { slackMs } from '../history.ts'
import type { ProductPromise } from '../promise.ts'

/** The provider is asked in the background, and for as long as it takes to answer. */
const REVOKED_MS = 10_000
/** Who has lost what is to be revoked, or cannot reach the provider, revokes nothing. */
const PREVENTS = /provider|token|refresh|instance|emptied|flushed|late-replicas|failed-over|restarted/

/** The tokens of a session end with its logout. */
export const endedIsRevoked: ProductPromise = {
  name: 'ended-is-revoked',
  sentence: 'A logout that was confirmed has all tokens of its session revoked, although replies of Redis were lost.',
  isTimed: true,
  check(history) {
    const { endings, calls } = history
    const now = Math.max(0, ...calls.slice(-1).map(({ at }) => at))
    const due = endings.flatMap(({ user, by, session, askedAt, confirmedAt, revokedAt = Infinity }) => {
      if (by !== 'user' || confirmedAt === undefined) return []
      const at = confirmedAt + REVOKED_MS + slackMs(history, askedAt, now)
      // A login in another tab meanwhile has another session, which is the one that ends.
      const isOther = calls.some((call) => {
        const isLogin = call.user === user && (call.kind === 'login' || call.kind === 'signup')
        return isLogin && call.at < confirmedAt && (call.until ?? Infinity) > askedAt
      })
      const isPrevented = faultsDuring(history, askedAt, at).some(({ name }) => PREVENTS.test(name))
      return at > now || isPrevented || isOther ? [] : [{ at, session, isRevoked: revokedAt <= at }]
    })
    return {
      judged: due.map(({ at }) => at),
      violations: due
        .filter(({ isRevoked }) => !isRevoked)
        .map(({ at, session }) => ({ at, seen: `tokens of session ${session} could be used long after its logout` })),
    }
  },
}
