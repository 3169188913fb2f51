import type { Call, Executed, History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** Whoever is told one of these is told that nothing was executed. */
const NOT_EXECUTED: ReadonlySet<string> = new Set([
  'upstream_unreachable',
  'upstream_budget',
  'upstream_limit',
  'credential_renewed',
  'orders_paused',
  'session_store_unavailable',
  'login_required',
  'session_expired',
])

/** Who is told an outcome is told the true one. */
export const trueOutcomes: ProductPromise = {
  name: 'true-outcomes',
  sentence: 'A page that is told that its order was executed, or that it was not, is told the truth.',
  isTimed: false,
  check(history) {
    const orders = history.calls.filter(({ kind, until }) => kind === 'order' && until !== undefined)
    const attempts = Map.groupBy(orders, ({ session, key }) => `${session} ${key}`)
    const all = [...attempts.values()]
    const violations = all.flatMap((calls) => falselyDone(history, calls).concat(falselyNotDone(history, calls)))
    return { judged: orders.map(({ until = 0 }) => until), violations }
  },
}

function falselyDone(history: History, calls: readonly Call[]): Violation[] {
  const done = calls.find(({ result }) => result === 'ok')
  if (done === undefined || executionsOf(history, done).some(({ response }) => response === done.body)) return []
  const seen = `${done.user} was told that order ${done.key} was executed, and upstream has no such response: ${done.body}`
  return [{ at: done.until ?? done.at, seen }]
}

/** What all attempts were told together: one of them may have been executed while another was told that it was not. */
function falselyNotDone(history: History, calls: readonly Call[]): Violation[] {
  const [first] = calls
  if (first === undefined || !calls.every(({ result }) => NOT_EXECUTED.has(result))) return []
  const executed = executionsOf(history, first).find(({ status }) => status < 400)
  if (executed === undefined) return []
  const told = calls.map(({ result }) => result).join(', ')
  return [
    { at: executed.at, seen: `${first.user} was told that order ${first.key} was not executed (${told}), but it was` },
  ]
}

const executionsOf = ({ executed }: History, { session, key }: Call): Executed[] =>
  executed.filter((each) => each.session === session && each.key === key)
