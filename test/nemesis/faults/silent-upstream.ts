import { anyInstance, type Fault } from '../fault.ts'
import { oneOf, onLinks, withoutUpstream } from '../whom.ts'

/** One direction between an instance and upstream is silent. */
export const silentUpstream: Fault = {
  name: 'silent-upstream',
  sentence: 'Calls and messages of one instance do not reach upstream, or are executed and nothing comes back.',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const way = oneOf(['request', 'reply'] as const, random)
    return {
      note: `${instance.name} and upstream: no ${way} passes`,
      touches: withoutUpstream(instance),
      settleMs: 2000,
      heal: onLinks([instance], 'upstream', { holds: [way] }),
    }
  },
}
