import { slackMs, type Call, type History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** An instance notices within so long that it cannot use Redis, and then has its grace. */
const NOTICED_MS = 16_000
/** Fewer refusals may be chance. */
const FEWEST = 3

/** A balancer sends nobody to an instance that serves nobody. */
export const readyMeansServed: ProductPromise = {
  name: 'ready-means-served',
  sentence:
    'An instance that has refused all orders for long, since it cannot use Redis, does not say that it is ready.',
  isTimed: true,
  check(history) {
    const { readiness, calls } = history
    const orders = calls.filter(({ kind, until }) => kind === 'order' && until !== undefined)
    const byInstance = Map.groupBy(orders, ({ instance }) => instance)
    const ready = readiness.filter(({ isReady }) => isReady)
    const violations = ready.flatMap(({ at, instance }) =>
      isUseless(history, byInstance.get(instance) ?? [], at)
        ? [
            {
              at,
              seen: `instance ${instance} says that it is ready, and has refused all orders for ${NOTICED_MS / 1000} s`,
            },
          ]
        : [],
    )
    return { judged: ready.map(({ at }) => at), violations: firstOnly(violations) }
  },
}

function isUseless(history: History, orders: readonly Call[], at: number): boolean {
  const from = at - NOTICED_MS - slackMs(history, at - NOTICED_MS, at)
  const told = orders.filter(({ until = 0 }) => until > from && until <= at)
  const first = orders.find(({ result }) => result === 'session_store_unavailable')?.until ?? Infinity
  const isRefused = told.every(({ result }) => result === 'session_store_unavailable')
  return first <= from && told.length >= FEWEST && isRefused
}

const firstOnly = (violations: Violation[]): Violation[] => violations.slice(0, 1)
