import { faultsDuring } from '../explained.ts'
import { slackMs, type Executed, type History, type Pause } from '../history.ts'
import { subjectsOf } from '../subjects.ts'
import type { ProductPromise, Violation } from '../promise.ts'
import { purchasesAt } from '../purchases.ts'

/** All instances obey within this time. */
const OBEYED_MS = 1000
/** Between the server and the clock of the observer. */
const MARGIN_MS = 100

/** Orders stop while an operator has paused them. */
export const pausedMeansPaused: ProductPromise = {
  name: 'paused-means-paused',
  sentence:
    'After a pause was confirmed, be it by one instance for itself, and until somebody asks to lift it, no order and no purchase leaves except within the time that an instance needs to learn of it.',
  isTimed: true,
  check(history) {
    const { pauses, executed } = history
    const orders = executed
      .filter(isOrder)
      .map(({ sentAt, instance, session, key, path }) => ({
        sentAt,
        instance,
        session,
        what: `the order ${key ?? path}`,
      }))
      .concat(
        purchasesAt(history).map(({ sentAt, instance, session, id }) => ({
          sentAt,
          instance,
          session,
          what: `the purchase ${id}`,
        })),
      )
    const subjects = subjectsOf(history)
    const violations = pauses.flatMap(({ subject, here, confirmedAt = here?.at, liftAskedAt = Infinity }) => {
      if (confirmedAt === undefined) return []
      const whose = orders.filter(
        ({ session, instance }) =>
          (subject === undefined || subjects.get(session ?? '') === subject) &&
          (here === undefined || instance === here.instance),
      )
      const during = whose.filter(({ sentAt }) => sentAt > confirmedAt && sentAt < liftAskedAt)
      return during.flatMap(({ sentAt, instance, what }): Violation[] => {
        const lateMs = sentAt - confirmedAt
        const permittedMs = OBEYED_MS + MARGIN_MS + slackMs(history, confirmedAt, sentAt)
        if (lateMs <= permittedMs) return []
        // Whoever has obeyed at once need not learn of it.
        if (here === undefined ? isCutOff(history, instance, confirmedAt, sentAt) : isNew(history, confirmedAt, sentAt))
          return []
        return [
          {
            at: sentAt,
            seen: `${what} left instance ${instance} ${Math.round(lateMs)} ms after a pause was confirmed`,
          },
        ]
      })
    })
    return { judged: judgedOf(pauses), violations }
  },
}

/** Whether an instance may have been started again, so that it does not know what it alone has obeyed. */
function isNew(history: History, from: number, to: number): boolean {
  return faultsDuring(history, from, to).some(({ name }) => /killed|rolled|previous-version/.test(name))
}

/** A pause says something only if it was longer than what instances need to obey. */
function judgedOf(pauses: readonly Pause[]): number[] {
  return pauses.flatMap(({ here, confirmedAt = here?.at, liftAskedAt = Infinity }) =>
    confirmedAt !== undefined && liftAskedAt > confirmedAt + OBEYED_MS + MARGIN_MS ? [confirmedAt] : [],
  )
}

/** A one-time URL is no order. */
const isOrder = ({ method, path }: Executed): boolean =>
  (method === 'POST' || method === 'PATCH') && !path.endsWith('/otp')

/** An instance that hears nothing of Redis learns of a pause when it can. One that cannot read what is there sends no order. */
function isCutOff(history: History, instance: number | undefined, from: number, to: number): boolean {
  const faults = faultsDuring(history, from, to).filter(({ name }) => /redis|rights/.test(name))
  return faults.some(({ touches }) => {
    const named = touches.flatMap(({ instances = [] }) => instances)
    return named.length === 0 || instance === undefined || named.includes(instance)
  })
}
