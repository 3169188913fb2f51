import { faultsDuring } from '../explained.ts'
import { slackMs, type Call, type Executed, type History } from '../history.ts'
import type { ProductPromise } from '../promise.ts'

/** Between the server, its page and the clock of the observer. */
const MARGIN_MS = 200
/** What has left an instance is late on its way. */
const DELIVERS_LATE = /^(late-execution|silent-upstream|slow-upstream)$/

/** Nothing is executed for a page that has been told what became of its order. */
export const givenUpMeansGivenUp: ProductPromise = {
  name: 'given-up-means-given-up',
  sentence: 'An order does not reach upstream any more once its page has been told what became of it.',
  isTimed: true,
  check(history) {
    const orders = history.calls.filter(({ kind, key }) => kind === 'order' && key !== undefined)
    const attempts = Map.groupBy(orders, ({ session, key }) => `${session} ${key}`)
    const judged = history.executed.flatMap((each) => {
      const calls = attempts.get(`${each.session} ${each.key}`)
      return calls === undefined ? [] : [{ each, calls }]
    })
    return {
      judged: judged.map(({ each }) => each.at),
      violations: judged
        .filter(({ each, calls }) => isLate(history, each, calls))
        .map(({ each: { key, at, instance } }) => ({
          at,
          seen: `upstream got the order ${key} by instance ${instance} when nobody waited for it any more`,
        })),
    }
  },
}

function isLate(history: History, { at, instance }: Executed, calls: readonly Call[]): boolean {
  const waits = ({ at: from, until = Infinity, result }: Call): boolean =>
    // A call goes on when its page has given up.
    from <= at && (result === 'no_answer' || at <= until + MARGIN_MS + slackMs(history, until, at, instance))
  return !calls.some(waits) && faultsDuring(history, at, at).every(({ name }) => !DELIVERS_LATE.test(name))
}
