import type { ProductPromise } from '../promise.ts'

/** An order with a key is executed at most once. */
export const atMostOnce: ProductPromise = {
  name: 'at-most-once',
  sentence: 'Upstream gets at most one call for each session and Idempotency-Key.',
  isTimed: false,
  check({ executed }) {
    const keyed = executed.filter(({ key, status }) => key !== undefined && status !== 401 && status !== 429)
    const violations = [...Map.groupBy(keyed, ({ session, key }) => `${session} ${key}`).values()].flatMap((calls) => {
      const second = calls[1]
      if (second === undefined) return []
      const times = calls.map(({ at, instance }) => `at ${Math.round(at)} ms by instance ${instance}`)
      return [
        { at: second.at, seen: `upstream got the order ${second.key} ${calls.length} times: ${times.join(', ')}` },
      ]
    })
    return { judged: keyed.map(({ at }) => at), violations }
  },
}
