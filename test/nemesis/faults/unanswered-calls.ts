import type { Fault } from '../fault.ts'
import { calledBy, oneOf, onLinks, someUsers } from '../whom.ts'

const BEGUN = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{'

/** Upstream does not answer one user. */
export const unansweredCalls: Fault = {
  name: 'unanswered-calls',
  sentence: 'Upstream takes the calls of one user and never answers, or begins responses that never end.',
  lastsMs: { least: 4000, most: 9000 },
  apply(fleet, random) {
    const users = someUsers(fleet, random, 1)
    const response = oneOf(['', BEGUN], random)
    return {
      note: `upstream ${response === '' ? 'does not answer' : 'never ends its responses to'} ${users.join(', ')}`,
      touches: [{ users }],
      settleMs: 5000,
      heal: onLinks(fleet.instances, 'upstream', {
        of: (opening) => !/^upgrade: websocket/im.test(opening),
        answers: (request) => (users.includes(calledBy(fleet, request) ?? '') ? response : undefined),
      }),
    }
  },
}
