import { faultsDuring } from '../explained.ts'
import { slackMs, type Ending, type History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** All instances learn of an end within this time. */
const LEARNT_MS = 1000
/** Sockets of a session that a login has replaced stay for longer, until the browser has its new cookie. */
const REPLACED_MS = 2000
/** Without Redis, calls of cached sessions go on for so long, and open sockets for longer than any run. */
const WITHOUT_REDIS_MS = 2750
/** Between the server and the clock of the observer. */
const MARGIN_MS = 100
/** Ends that no replica has confirmed in time may be undone, and operators are told (docs/operating/redis.md). */
const UNDOES = /late-replicas|^failed-over/

/** Nothing is done for a session that has ended. */
export const endedMeansEnded: ProductPromise = {
  name: 'ended-means-ended',
  sentence:
    'After the end of a session was confirmed, no call and no message leaves on its behalf except within the time that an instance needs to learn of it.',
  isTimed: true,
  check(history) {
    const left = [
      ...history.executed.map((each) => ({
        ...each,
        what: `${each.method} ${each.path}`,
        withoutRedisMs: WITHOUT_REDIS_MS,
      })),
      ...history.delivered.map((each) => ({ ...each, what: `the message ${each.text}`, withoutRedisMs: Infinity })),
    ]
    const violations = history.endings.flatMap((ending) => {
      const ended = ending.confirmedAt
      if (ended === undefined) return []
      const late = left.filter(({ session, sentAt }) => session === ending.session && sentAt > ended)
      return late.flatMap(({ sentAt, instance, what, withoutRedisMs }): Violation[] => {
        const lateMs = sentAt - ended
        if (lateMs <= permittedMs(history, ending, { sentAt, instance, withoutRedisMs })) return []
        const seen = `${what} left instance ${instance} ${Math.round(lateMs)} ms after the end of its session was confirmed`
        return [{ at: sentAt, seen }]
      })
    })
    return { judged: history.endings.flatMap(({ confirmedAt }) => confirmedAt ?? []), violations }
  },
}

interface Left {
  readonly sentAt: number
  readonly instance: number | undefined
  readonly withoutRedisMs: number
}

function permittedMs(history: History, ending: Ending, { sentAt, instance, withoutRedisMs }: Left): number {
  const { by, askedAt, confirmedAt = askedAt } = ending
  const names = faultsDuring(history, askedAt, sentAt).map(({ name }) => name)
  if (names.some((name) => UNDOES.test(name))) return Infinity
  const isWithoutRedis = names.some((name) => /redis/.test(name))
  const learntMs = by === 'login' ? REPLACED_MS : LEARNT_MS
  return (isWithoutRedis ? withoutRedisMs : learntMs) + MARGIN_MS + slackMs(history, confirmedAt, sentAt, instance)
}
