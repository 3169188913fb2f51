import type { Fault } from '../fault.ts'
import { jsonResponse } from '../http.ts'
import { oneOf, onLinks } from '../whom.ts'

const SHARE = 0.3
const STATUSES = [302, 500, 502, 503] as const

/** Upstream has faults of its own. */
export const failingUpstream: Fault = {
  name: 'failing-upstream',
  sentence: 'Upstream answers some calls with a 5xx or a redirect, which says nothing about what it has done.',
  apply(fleet, random) {
    const status = oneOf(STATUSES, random)
    return {
      note: `some calls are answered with ${status}`,
      touches: [{ kinds: ['read', 'order', 'socket'], results: ['upstream_error'] }],
      settleMs: 500,
      heal: onLinks(fleet.instances, 'upstream', {
        of: (opening) => !/^upgrade: websocket/im.test(opening),
        answers: () => (random() < SHARE ? jsonResponse(status, {}, { location: '/elsewhere' }) : undefined),
      }),
    }
  },
}
