import type { Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

const SLOW_MS = { least: 100, most: 500 }

/** The provider takes its time. */
export const slowProvider: Fault = {
  name: 'slow-provider',
  sentence:
    'Requests to the provider and its responses take up to half a second each, which nobody may feel as a failure.',
  apply({ instances }, random) {
    const slowMs = Math.round(SLOW_MS.least + random() * (SLOW_MS.most - SLOW_MS.least))
    return {
      note: `the provider is ${slowMs} ms away`,
      touches: [],
      settleMs: 0,
      heal: onLinks(instances, 'provider', { slowMs }),
    }
  },
}
