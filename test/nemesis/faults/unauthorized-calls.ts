import type { Fault } from '../fault.ts'
import { jsonResponse } from '../http.ts'
import { calledBy, onLinks, someUsers } from '../whom.ts'

const SHARE = 0.3

/** Upstream refuses valid tokens now and then. */
export const unauthorizedCalls: Fault = {
  name: 'unauthorized-calls',
  sentence: 'Upstream answers some calls of one or two users with 401, although their tokens are valid.',
  apply(fleet, random) {
    const users = someUsers(fleet, random, random() < 0.5 ? 1 : 2)
    return {
      note: `some calls of ${users.join(', ')} are answered with 401`,
      touches: [
        { users, results: ['credential_renewed', 'provider_unavailable', 'session_expired', 'login_required'] },
      ],
      // A token that has just been renewed is not renewed again so soon.
      settleMs: 30_000,
      heal: onLinks(fleet.instances, 'upstream', {
        answers: (request) =>
          users.includes(calledBy(fleet, request) ?? '') && random() < SHARE
            ? jsonResponse(401, { errors: [{ status: 401, code: 'Unauthorized', message: 'By the nemesis.' }] })
            : undefined,
      }),
    }
  },
}
