import type { Executed, History, Intention } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** What a user wants once is made once at most, and the package says the truth of it. */
export const onceMeansOnce: ProductPromise = {
  name: 'once-means-once',
  sentence:
    'What the browser package makes once is executed once at most, even if the page forgets the key, and its outcome is the true one.',
  isTimed: false,
  check(history) {
    const ended = history.intentions.filter(({ until }) => until !== undefined)
    return {
      judged: ended.map(({ until = 0 }) => until),
      violations: history.intentions.flatMap((intention) => against(history, intention)),
    }
  },
}

function against(history: History, intention: Intention): Violation[] {
  const { recipient, until, outcome, user, times } = intention
  const executions = executionsOf(history, intention)
  const [first] = executions
  const spare = executions[times]
  if (spare !== undefined)
    return [
      {
        at: spare.at,
        seen: `${user} wants ${recipient} ${times} times, and it was executed ${executions.length} times`,
      },
    ]
  if (until === undefined) return []
  if (outcome === 'made' && first === undefined)
    return [{ at: until, seen: `${user} was told that ${recipient} was made, and it was not` }]
  if (outcome === 'not made' && first !== undefined)
    return [{ at: first.at, seen: `${user} was told that ${recipient} was not made, but it was` }]
  return []
}

const executionsOf = ({ executed }: History, { recipient }: Intention): Executed[] =>
  executed.filter(({ status, request }) => status < 400 && request.includes(`"${recipient}"`))
