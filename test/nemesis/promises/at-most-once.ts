import type { ProductPromise } from '../promise.ts'
import { purchasesAt } from '../purchases.ts'

/** An order with a key, and a purchase on a socket, is executed at most once. */
export const atMostOnce: ProductPromise = {
  name: 'at-most-once',
  sentence:
    'Upstream gets at most one call for each session and Idempotency-Key, and each purchase on a socket at most once.',
  isTimed: false,
  check(history) {
    const { executed } = history
    const keyed = executed.filter(({ key, status }) => key !== undefined && status !== 401 && status !== 429)
    const violations = [...Map.groupBy(keyed, ({ session, key }) => `${session} ${key}`).values()].flatMap((calls) => {
      const second = calls[1]
      if (second === undefined) return []
      const times = calls.map(({ at, instance }) => `at ${Math.round(at)} ms by instance ${instance}`)
      return [
        { at: second.at, seen: `upstream got the order ${second.key} ${calls.length} times: ${times.join(', ')}` },
      ]
    })
    const purchases = purchasesAt(history)
    const twice = [...Map.groupBy(purchases, ({ id }) => id)].flatMap(([id, [, second]]) =>
      second === undefined ? [] : [{ at: second.at, seen: `upstream got the purchase ${id} twice` }],
    )
    return { judged: [...keyed, ...purchases].map(({ at }) => at), violations: violations.concat(twice) }
  },
}
