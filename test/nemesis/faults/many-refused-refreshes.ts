import type { Fault } from '../fault.ts'
import type { Fleet } from '../fleet.ts'
import { oneOf, someUsers } from '../whom.ts'
import { REFUSALS, refusing } from './refused-refreshes.ts'

/** These say something of a user, and nothing of the provider. */
const OF_USERS = REFUSALS.filter(({ is }) => is === 'refusal')

/** The provider renews no tokens of most users. */
export const manyRefusedRefreshes: Fault = {
  name: 'many-refused-refreshes',
  sentence:
    'The provider refuses to renew the tokens of all users but one, with an error code that concerns each of them: that one goes on as if nothing had happened.',
  fits: ({ refreshTokens }) => refreshTokens,
  lastsMs: { least: 5000, most: 15_000 },
  apply(fleet, random) {
    const { calls } = fleet.observer.history
    const all = someUsers(fleet, random, Infinity)
    // The tokens of whoever has logged in last expire when those of the others already have.
    const begun = calls.filter(({ began, user }) => began !== undefined && isOrdering(fleet, user))
    const well = begun.toSorted((one, other) => (one.until ?? 0) - (other.until ?? 0)).at(-1)?.user
    return refusing(
      fleet,
      all.filter((user) => user !== well),
      oneOf(OF_USERS, random),
    )
  },
}

function isOrdering({ observer: { history } }: Fleet, user: string): boolean {
  return history.calls.some((call) => call.user === user && call.kind === 'order')
}
