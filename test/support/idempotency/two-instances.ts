import { Changeable } from '../../../src/config/changing.ts'
import type { Claim } from '../../../src/proxy/idempotency/claim.ts'
import { IdempotencyRecords, type Claimed } from '../../../src/proxy/idempotency/idempotency-records.ts'
import { Envelope, type Session } from '../../../src/sessions/index.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { SECRETS } from '../server/test-server.ts'
import { DIGEST, LIMITS, sessionIn } from './records.ts'
import { SharedStoreLink } from './shared-store-link.ts'

/** The records of two instances on one store, and a session. */
export async function twoInstances(times = { leaseMs: 30_000, clockSkewMs: 0 }) {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const links = [new SharedStoreLink(store), new SharedStoreLink(store)] as const
  const [here, there] = links.map(
    (link) =>
      new IdempotencyRecords(link, new Envelope(new Changeable([SECRETS])), LIMITS, { settleMs: 1000, ...times }),
  )
  if (here === undefined || there === undefined) throw new Error('no instance')
  return { store, session, links, here, there }
}

/** Claims a key that is free. */
export async function claim(records: IdempotencyRecords, session: Session): Promise<Claim> {
  const claimed = await records.claim(session, 'key', DIGEST)
  if (claimed.is !== 'claimed') throw new Error(claimed.is)
  return claimed.claim
}

/** What another call with the same key is told. */
export async function repeat(records: IdempotencyRecords, session: Session): Promise<Claimed['is']> {
  return (await records.claim(session, 'key', DIGEST)).is
}
