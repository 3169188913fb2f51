import { anyInstance, type Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

const SLOW_MS = { least: 50, most: 500 }

/** Upstream is far away. */
export const slowUpstream: Fault = {
  name: 'slow-upstream',
  sentence:
    'All that one instance and upstream say to each other takes up to half a second, which nobody may feel as a failure.',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const slowMs = Math.round(SLOW_MS.least + random() * (SLOW_MS.most - SLOW_MS.least))
    return {
      note: `upstream is ${slowMs} ms away from ${instance.name}`,
      touches: [],
      settleMs: 0,
      heal: onLinks([instance], 'upstream', { slowMs }),
    }
  },
}
