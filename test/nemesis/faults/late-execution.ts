import { anyInstance, type Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

/** Upstream executes orders after nobody waits for them any more. */
export const lateExecution: Fault = {
  name: 'late-execution',
  sentence: 'Orders of one instance wait on their way until its time limit has passed, and are executed then.',
  lastsMs: { least: 5000, most: 9000 },
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    return {
      note: `orders of ${instance.name} wait on their way`,
      touches: [
        // The token of an order may have been renewed by the time it arrives.
        {
          instances: [instance.at],
          kinds: ['order'],
          results: ['ok', 'upstream_timeout', 'upstream_lost', 'credential_renewed'],
        },
        // A one-time URL is asked for in the same way.
        { instances: [instance.at], kinds: ['socket'], results: ['ok', 'upstream_timeout', 'upstream_lost'] },
      ],
      settleMs: 3000,
      heal: onLinks([instance], 'upstream', { of: (opening) => /^(POST|PATCH) /.test(opening), holds: ['request'] }),
    }
  },
}
