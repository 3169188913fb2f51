import { anyInstance, type Fault } from '../fault.ts'
import { onLinks, withoutUpstream } from '../whom.ts'

/** The network to upstream fails under what is being sent. */
export const failedNetworkOfUpstream: Fault = {
  name: 'failed-network-of-upstream',
  sentence:
    'The network between one instance and upstream fails for longer than its time limits: what the instance sends waits in its kernel.',
  lastsMs: { least: 4000, most: 9000 },
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    return {
      note: `${instance.name} and upstream have no network`,
      touches: withoutUpstream(instance),
      settleMs: 2000,
      heal: onLinks([instance], 'upstream', { holds: ['request', 'reply'], isAtSender: true }),
    }
  },
}
