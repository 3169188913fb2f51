import type { Fault } from '../fault.ts'
import type { Touch } from '../history.ts'
import { jsonResponse } from '../http.ts'
import { calledBy, oneOf, onLinks, someUsers } from '../whom.ts'

/** With UPSTREAM_BUDGET, no Retry-After means ten seconds. */
const RETRY_AFTER_SECONDS = [undefined, '1', '4'] as const
const TOLD = ['429', 'rate_limited', 'upstream_limit']

/** Upstream limits a user, or the address of all. */
export const limitedCalls: Fault = {
  name: 'limited-calls',
  sentence: 'Upstream answers the calls of one user with 429, or those of everybody, as a limit of the address does.',
  apply(fleet, random) {
    const users = random() < 0.6 ? someUsers(fleet, random, 1) : undefined
    const seconds = oneOf(RETRY_AFTER_SECONDS, random)
    const headers = seconds === undefined ? {} : { 'retry-after': seconds }
    const touch: Touch = users === undefined ? { results: [...TOLD, 'upstream_budget'] } : { users, results: TOLD }
    return {
      note: `upstream limits ${users?.join(', ') ?? 'everybody'}, Retry-After: ${seconds ?? 'none'}`,
      touches: [touch],
      settleMs: 15_000,
      heal: onLinks(fleet.instances, 'upstream', {
        of: (opening) => !/^upgrade: websocket/im.test(opening),
        answers: (request) =>
          users === undefined || users.includes(calledBy(fleet, request) ?? '')
            ? jsonResponse(429, { errors: [{ status: 429, code: 'RateLimit', message: 'By the nemesis.' }] }, headers)
            : undefined,
      }),
    }
  },
}
