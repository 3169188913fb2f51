import { digestOf } from '../../../src/proxy/idempotency/record.ts'
import type { Session } from '../../../src/sessions/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { instanceOn, newSession } from '../sessions/session-instance.ts'

/** Limits of records that hardly any test reaches. */
export const LIMITS = {
  requiredFor: new Set<string>(),
  replicas: 0,
  ttlMs: 60_000,
  maxBodyBytes: 1000,
  maxAnswerBytes: 1000,
  maxRecords: 100,
  maxKeptBytes: 100_000,
  isCompact: false,
}
/** The digest of some call, and its response. */
export const DIGEST = digestOf('POST', '/path', null)
export const ANSWER = { status: 200, headers: { etag: '"1"' }, body: Buffer.from('done') }

/** A new session in a store. */
export async function sessionIn(store: Store): Promise<Session> {
  const sessions = instanceOn(store)
  const found = await sessions.reader.reload(await newSession(sessions))
  if (found.is !== 'live') throw new Error('no session')
  return found.session
}
