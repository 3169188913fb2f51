import { anyInstance, type Fault } from '../fault.ts'
import { oneOf } from '../whom.ts'

const MINUTE_MS = 60_000
/** Longer than any lease or lock, and longer than a session may idle. */
const MINUTES = [-70, -5, -0.2, 0.2, 5, 70] as const

/** The clock of an instance is set, and set right again. */
export const jumpedClock: Fault = {
  name: 'jumped-clock',
  sentence:
    'The time of day of one instance jumps ahead or back, and jumps back later, which changes nothing but its log. An instance of the previous version goes by its clock, so nothing happens to that.',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const minutes = oneOf(MINUTES, random)
    instance.setClock(minutes * MINUTE_MS)
    return {
      note: `the clock of ${instance.name} is wrong by ${minutes} minutes`,
      touches: [],
      settleMs: 0,
      heal: () => instance.setClock(0),
    }
  },
}
