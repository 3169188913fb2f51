import { anyInstance, type Fault } from '../fault.ts'
import { lostStreams, onLinks } from '../whom.ts'

/** There is no way to upstream for one instance. */
export const refusedUpstream: Fault = {
  name: 'refused-upstream',
  sentence: 'The connections of one instance to upstream break, and new ones are refused.',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    return {
      note: `${instance.name} cannot reach upstream`,
      touches: [
        {
          instances: [instance.at],
          kinds: ['read', 'order', 'socket'],
          results: ['upstream_unreachable', 'upstream_lost'],
        },
        lostStreams(instance),
      ],
      settleMs: 1500,
      heal: onLinks([instance], 'upstream', { refuses: true }),
    }
  },
}
