import { Problem } from '../problem.ts'
import type { Session } from '../sessions/index.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import type { OutgoingBody } from '../upstream/request-body.ts'
import type { Stale } from '../upstream/exchange.ts'
import type { Call, CallDependencies } from './call.ts'
import { sendOnce, type KeyedSending } from './send-once.ts'

/** What became of a call, and the call as it was sent: its session may be a newer version of the one that it came with. */
interface Sent<SomeCall extends Call> {
  readonly call: SomeCall
  readonly outcome: Exclude<ForwardOutcome, Stale>
}

/** How often a call is sent if its session changes each time while it waits. A session hardly ever changes twice a minute. */
const MAX_TRIES = 3

/**
 * Sends a call once, unless its session has ended since it was read, or its claim to an Idempotency-Key has. A call may wait
 * for its body, for the store, for the budget and for a connection, so this asks before all of them and once more when the
 * first byte is about to be written. Without a report of a change neither costs a round trip, except that a call that waits
 * on a Redis Cluster reads its session again when the last reading is a second old.
 * @throws Problem, StoreUnavailable; nothing was sent then
 */
export async function sendAsLive<SomeCall extends Call>(
  deps: CallDependencies,
  original: SomeCall,
  body: OutgoingBody,
  keyed?: KeyedSending,
): Promise<Sent<SomeCall>> {
  let { session } = original
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (keyed?.claim.maySend === false) break
    if (session !== undefined && !deps.sessions.isCurrent(session)) session = await reread(deps, session)
    const call = session === original.session ? original : { ...original, session }
    // A stream that upstream did not get cannot be read a second time.
    if (tries > 0 && body.is === 'streamed') throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
    const outcome = await sendOnce(deps, call, body, keyed)
    if (outcome.is !== 'stale') return { call, outcome }
  }
  throw new Problem('session_store_unavailable', { retryAfterSeconds: 1 })
}

/** Whatever the state of its token, which was good when the call came: upstream may refuse it, and then it is renewed. */
async function reread({ sessions, http }: CallDependencies, session: Session): Promise<Session> {
  const found = await sessions.reread(session)
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') throw new Problem('session_expired', { loginUrl: `${http.publicUrl}/auth/login` })
  return found.session
}
