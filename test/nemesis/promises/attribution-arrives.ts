import { faultsDuring } from '../explained.ts'
import type { History } from '../history.ts'
import type { ProductPromise } from '../promise.ts'

/** No sign-up is lost to its partner. */
export const attributionArrives: ProductPromise = {
  name: 'attribution-arrives',
  sentence:
    'Each sign-up comes to the provider with the values of the last complete link that its browser had from a partner, and no other sign-up and no login has any.',
  isTimed: false,
  check(history) {
    const { starts, authorizations } = history
    const asked = new Map(starts.map((start) => [start.state, start]))
    const known = authorizations.flatMap(({ at, state, attribution }) => {
      const start = asked.get(state)
      return start === undefined ? [] : [{ at, start, attribution }]
    })
    return {
      judged: known.filter(({ start }) => start.attribution !== '').map(({ at }) => at),
      violations: known
        .filter(
          ({ at, start, attribution }) => start.attribution !== attribution && !isUnreadable(history, at, attribution),
        )
        .map(({ at, start: { user, kind, attribution: expected }, attribution }) => ({
          at,
          seen: `a ${kind} of ${user} came to the provider with ${attribution || 'no partner'} instead of ${expected || 'none'}`,
        })),
    }
  },
}

/** Whether the link may have been remembered by an instance that writes with a secret which the others have not. */
function isUnreadable(history: History, at: number, attribution: string): boolean {
  return attribution === '' && faultsDuring(history, at, at).some(({ name }) => /secrets/.test(name))
}
