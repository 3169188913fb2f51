import type { Applied, Fault } from '../fault.ts'
import type { Fleet } from '../fleet.ts'
import type { Touch } from '../history.ts'
import { jsonResponse } from '../http.ts'
import { oneOf, onLinks, refreshedBy, someUsers } from '../whom.ts'

/** What the provider says of a refresh, and what it may mean for a user to whom it says that (docs/reference.md, The session). */
export const REFUSALS = [
  { status: 400, error: 'invalid_grant', is: 'end' },
  { status: 400, error: 'interaction_required', is: 'refusal' },
  { status: 403, error: 'access_denied', is: 'refusal' },
  { status: 401, error: 'token_inactive', is: 'refusal' },
  { status: 200, error: 'consent_required', is: 'refusal' },
  { status: 400, error: 'invalid_request', is: 'refusal' },
  { status: 400, error: 'not_known_here', is: 'refusal' },
  { status: 401, error: 'invalid_client', is: 'outage' },
  { status: 400, error: 'temporarily_unavailable', is: 'outage' },
  { status: 500, error: 'server_error', is: 'outage' },
] as const

/** A refusal is tried again after half a minute. */
const PAUSED_MS = 40_000

/** The provider renews no tokens of some users. */
export const refusedRefreshes: Fault = {
  name: 'refused-refreshes',
  sentence: 'The provider refuses to renew the tokens of one or two users, with any error code.',
  fits: ({ refreshTokens }) => refreshTokens,
  apply(fleet, random) {
    const users = someUsers(fleet, random, random() < 0.5 ? 1 : 2)
    return refusing(fleet, users, oneOf(REFUSALS, random))
  },
}

/** From now on the provider refuses to renew the tokens of these users. */
export function refusing(
  fleet: Fleet,
  users: readonly string[],
  { status, error, is }: (typeof REFUSALS)[number],
): Applied {
  const touches: Touch[] = [
    { users, results: ['provider_unavailable', 'session_expired', 'login_required'], settleMs: PAUSED_MS },
  ]
  // What fails like the provider itself counts as its failure, for everybody whose token has expired.
  if (is === 'outage') touches.push({ results: ['provider_unavailable'], settleMs: PAUSED_MS })
  return {
    note: `the provider answers refreshes of ${users.join(', ')} with ${status} ${error}`,
    touches,
    settleMs: 0,
    heal: onLinks(fleet.instances, 'provider', {
      answers: (request) =>
        users.includes(refreshedBy(fleet, request) ?? '') ? jsonResponse(status, { error }) : undefined,
    }),
  }
}
