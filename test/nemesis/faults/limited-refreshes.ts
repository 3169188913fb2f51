import type { Fault } from '../fault.ts'
import { jsonResponse } from '../http.ts'
import { oneOf, onLinks, refreshedBy, someUsers } from '../whom.ts'

/** Without a Retry-After, it is as if that were 10. */
const RETRY_AFTER_SECONDS = [undefined, '1', '3'] as const

/** The provider limits some users. */
export const limitedRefreshes: Fault = {
  name: 'limited-refreshes',
  sentence: 'The provider answers refreshes of one or two users with 429, with and without Retry-After.',
  fits: ({ refreshTokens }) => refreshTokens,
  apply(fleet, random) {
    const users = someUsers(fleet, random, random() < 0.5 ? 1 : 2)
    const seconds = oneOf(RETRY_AFTER_SECONDS, random)
    const headers = seconds === undefined ? {} : { 'retry-after': seconds }
    return {
      note: `the provider limits ${users.join(', ')}, Retry-After: ${seconds ?? 'none'}`,
      // Three users within ten seconds would be a limit for all of them.
      touches: [{ users, results: ['provider_unavailable'] }],
      settleMs: 12_000,
      heal: onLinks(fleet.instances, 'provider', {
        answers: (request) =>
          users.includes(refreshedBy(fleet, request) ?? '')
            ? jsonResponse(429, { error: 'slow_down' }, headers)
            : undefined,
      }),
    }
  },
}
