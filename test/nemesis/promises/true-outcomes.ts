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
    const orders = history.calls.filter(({ kind }) => kind === 'order')
    const attempts = Map.groupBy(orders, ({ session, key }) => `${session} ${key}`)
    const all = [...attempts.values()]
    const violations = all.flatMap((calls) => falselyDone(history, calls).concat(falselyNotDone(history, calls)))
    return { judged: orders.flatMap(({ until }) => until ?? []), violations }
  },
}

function falselyDone(history: History, calls: readonly Call[]): Violation[] {
  const done = calls.find(({ result }) => result === 'ok')
  if (done === undefined || executionsOf(history, done).some(({ response }) => response === done.body)) return []
  const seen = `${done.user} was told that order ${done.key} was executed, and upstream has no such response: ${done.body}`
  return [{ at: done.until ?? done.at, seen }]
}

/** An attempt that was told that nothing was executed is believed, if another one at the same instance can have been. */
function falselyNotDone(history: History, calls: readonly Call[]): Violation[] {
  return calls
    .filter(({ result }) => NOT_EXECUTED.has(result))
    .flatMap((call) => {
      const others = calls.filter((each) => each !== call && each.instance === call.instance)
      const executed = executionsOf(history, call).find(
        ({ status, instance, sentAt }) =>
          status < 400 &&
          instance === call.instance &&
          isDuring(call, sentAt) &&
          !others.some((each) => isDuring(each, sentAt)),
      )
      if (executed === undefined) return []
      const seen = `${call.user} was told that order ${call.key} was not executed (${call.result}), but it was`
      return [{ at: executed.at, seen }]
    })
}

/** A call goes on when its page has given up. */
function isDuring({ at, until = Infinity, result }: Call, moment: number): boolean {
  return at <= moment && (moment <= until || result === 'no_answer')
}

const executionsOf = ({ executed }: History, { session, key }: Call): Executed[] =>
  executed.filter((each) => each.session === session && each.key === key)
