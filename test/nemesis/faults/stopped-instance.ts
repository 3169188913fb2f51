import { asleep } from '../../support/time/stopped-process.ts'
import { anyInstance, type Fault } from '../fault.ts'

/** An instance stands still, as on a machine that sleeps. */
export const stoppedInstance: Fault = {
  name: 'stopped-instance',
  sentence: 'All processes of one instance stand still (SIGSTOP), and go on later.',
  apply(fleet, random) {
    const { at, name, process } = anyInstance(fleet, random)
    const over = Promise.withResolvers<void>()
    const sleeping = asleep(process.child.pid ?? 0, () => over.promise)
    return {
      note: `${name} stands still`,
      touches: [
        { instances: [at], kinds: ['login', 'signup', 'logout', 'socket'] },
        // A page gives up, or the instance has to hear of Redis again. An answer that has arrived meanwhile is read.
        { instances: [at], results: ['ok', 'no_answer', 'session_store_unavailable'] },
        // Whoever waits for the one that renews the session's tokens.
        { results: ['provider_unavailable'] },
      ],
      settleMs: 3000,
      heal() {
        over.resolve()
        return sleeping
      },
    }
  },
}
