import type { Fault } from '../fault.ts'
import { liftPause, pauseOrders } from '../operators/pauses.ts'
import { oneOf } from '../whom.ts'

/** Operators who do not know of each other pause at the same moment. */
export const twoOperators: Fault = {
  name: 'two-operators',
  sentence:
    'Orders are paused by a request to every instance at the same moment, and a request to one of them lifts that.',
  async apply(fleet, random) {
    const paused = await pauseOrders(fleet, fleet.instances)
    return {
      note: 'orders are paused from two places',
      // What a pause explains is in the history.
      touches: [],
      settleMs: 0,
      heal: () => liftPause(fleet, () => oneOf(fleet.instances, random), paused),
    }
  },
}
