import type { ProductPromise, Violation } from '../promise.ts'

/** More renewals of one session within this time than so many serve nobody: no token of a plan lasts less than 5 s. */
const MOST = 4
const WITHIN_MS = 10_000

/** Whatever upstream refuses, the provider is not asked for tokens again and again. */
export const tokensAreRenewedSeldom: ProductPromise = {
  name: 'tokens-are-renewed-seldom',
  sentence: 'The provider is asked for new tokens of a session when they expire, and once if upstream refuses them.',
  isTimed: false,
  check({ tokenCalls }) {
    const granted = tokenCalls.filter(({ isGranted, session }) => isGranted && session !== undefined)
    const violations = [...Map.groupBy(granted, ({ session }) => session)].flatMap(([session, calls]): Violation[] => {
      const [at] = calls.flatMap((call, nth) => {
        const first = calls[nth - MOST]
        return first !== undefined && call.at - first.at < WITHIN_MS ? [call.at] : []
      })
      const seen = `the tokens of session ${session} were renewed more than ${MOST} times within ${WITHIN_MS / 1000} s`
      return at === undefined ? [] : [{ at, seen }]
    })
    return { judged: granted.map(({ at }) => at), violations }
  },
}
