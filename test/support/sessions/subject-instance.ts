import { createHash } from 'node:crypto'
import { Changeable } from '../../../src/config/changing.ts'
import type { Identity } from '../../../src/sessions/identity.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import { startStopwatch } from '../../../src/login/callback-route.ts'
import { SubjectIndex } from '../../../src/sessions/subject-index.ts'
import { Subjects } from '../../../src/sessions/subjects.ts'
import { sessionKey } from '../../../src/store/keys.ts'
import type { Store } from '../../../src/store/store.ts'
import { sessionRecord } from './session-instance.ts'
import { logNames } from '../server/settings.ts'
import { SECRETS } from '../server/test-server.ts'

/** The sessions of one instance and their index by subject, without a server. */
export interface SubjectInstance {
  readonly subjects: Subjects
  readonly sessions: SessionRepository
  /** Logs in as the callback does, and pauses between the steps. @returns the store key if the session may live */
  logIn(subject: string, pause?: () => Promise<unknown>): Promise<string | undefined>
}

export const REQUESTER = { reqId: 'request', client: '203.0.113.9' }
let created = 0

/** An instance on a store. */
export async function subjectInstance(
  store: Store,
  { secrets = [SECRETS], maxSessions = Infinity }: { secrets?: readonly string[]; maxSessions?: number } = {},
): Promise<SubjectInstance> {
  const changing = new Changeable(secrets)
  const envelope = new Envelope(changing)
  const limits = { idleMs: 600_000, maxMs: 3_600_000 }
  const sessions = new SessionRepository(store, envelope, limits, logNames(secrets[0] ?? ''))
  const index = new SubjectIndex(await store.openIndex(), envelope, changing, sessions)
  const subjects = new Subjects({} as Identity, index, sessions, store, maxSessions)
  return {
    subjects,
    sessions,
    async logIn(subject, pause = async () => undefined) {
      const ageMs = startStopwatch()
      await pause()
      const id = createHash('sha256').update(`session of a subject ${++created}`).digest('base64url')
      const key = sessionKey(id)
      const record = sessionRecord({ subject })
      const enlisted = await subjects.enlist({ subject, id, endsAt: record.endsAt, client: REQUESTER.client })
      await pause()
      await sessions.create(id, record)
      await pause()
      if (!(await subjects.mayLive(enlisted, ageMs))) {
        await sessions.end(key, 'revoked')
        return undefined
      }
      await subjects.makeRoom(enlisted, REQUESTER)
      return key
    },
  }
}
