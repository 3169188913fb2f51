import { anyInstance, type Fault } from '../fault.ts'
import type { Fleet, Instance } from '../fleet.ts'
import type { Touch } from '../history.ts'

/** A lock of a dead instance ends by itself after so long, and so does what is known of its keys. */
const FORGOTTEN_MS = 25_000
/** What the provider has been asked for so recently may not have been saved. */
const RENEWS_MS = 1000

/** An instance dies. */
export const killedInstance: Fault = {
  name: 'killed-instance',
  sentence: 'All processes of one instance are killed, and it is started again later.',
  async apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    await instance.kill()
    return {
      note: `${instance.name} is killed`,
      touches: touchedBy(instance, fleet),
      settleMs: 1000,
      heal: () => instance.restart(),
    }
  },
}

/** Whom the death of an instance at this moment may concern. */
export function touchedBy({ at: instance }: Instance, { observer: { now, history } }: Fleet): readonly Touch[] {
  const renewing = new Set(history.tokenCalls.filter(({ at }) => at > now() - RENEWS_MS).map(({ session }) => session))
  const users = history.calls.filter(({ session }) => renewing.has(session)).map(({ user }) => user)
  return [
    { instances: [instance], kinds: ['read', 'order', 'logout', 'socket'], results: ['no_answer', ''] },
    { kinds: ['login', 'signup'], results: ['no_answer', 'login_failed'] },
    // Whoever waits for the renewal that it had begun.
    { results: ['provider_unavailable'], settleMs: FORGOTTEN_MS },
    { users: [...new Set(users)], results: ['session_expired', 'login_required'], settleMs: 60_000 },
    { kinds: ['order'], results: ['idempotency_in_progress', 'outcome_unknown'], settleMs: FORGOTTEN_MS },
  ]
}
