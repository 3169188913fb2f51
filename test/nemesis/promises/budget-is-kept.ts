import { slackMs, type Budget, type History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** Between the server and the clock of the observer. */
const MARGIN_MS = 50

/** All instances together keep the upstream budget. */
export const budgetIsKept: ProductPromise = {
  name: 'budget-is-kept',
  sentence: 'In no window of the upstream budget do more calls leave the instances than it allows.',
  isTimed: false,
  check(history) {
    const { budgets, executed } = history
    const sent = executed.map(({ sentAt }) => sentAt).sort((one, other) => one - other)
    return {
      judged: budgets.length === 0 ? [] : sent,
      violations: budgets.flatMap((budget) => exceeded(history, budget, sent)),
    }
  },
}

/** The first window with too many calls. */
function exceeded(history: History, { calls, windowMs }: Budget, sent: readonly number[]): Violation[] {
  for (const [nth, from] of sent.entries()) {
    const last = sent[nth + calls]
    if (last === undefined) return []
    const lastsMs = last - from + MARGIN_MS + slackMs(history, from, last)
    if (lastsMs < windowMs)
      return [
        {
          at: last,
          seen: `${calls + 1} calls left within ${Math.round(last - from)} ms, and ${calls} may in ${windowMs} ms`,
        },
      ]
  }
  return []
}
