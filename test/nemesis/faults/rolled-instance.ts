import { anyInstance, type Fault } from '../fault.ts'
import type { Instance } from '../fleet.ts'
import type { Touch } from '../history.ts'

/** An instance is restarted as a roll does it. */
export const rolledInstance: Fault = {
  name: 'rolled-instance',
  sentence: 'One instance ends after SIGTERM, and is started again later.',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    instance.process.child.kill('SIGTERM')
    return {
      note: `${instance.name} ends`,
      touches: rolled(instance),
      settleMs: 1000,
      heal: () => instance.restart(),
    }
  },
}

/** Whom the end of an instance after SIGTERM may concern. */
export function rolled({ at }: Instance): readonly Touch[] {
  return [
    { instances: [at], kinds: ['read', 'order', 'logout', 'socket'], results: ['no_answer', 'shutting_down'] },
    { kinds: ['login', 'signup'], results: ['no_answer', 'shutting_down'] },
  ]
}
