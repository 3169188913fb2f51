import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import { SessionWatcher } from '../../../src/sessions/watcher.ts'
import { SessionCookie } from '../../../src/sessions/session-cookie.ts'
import { SessionReader } from '../../../src/sessions/session-reader.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import type { SessionRecord } from '../../../src/sessions/session.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { connectedStore } from '../redis/connected-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { logNames } from '../server/settings.ts'
import { SECRETS } from '../server/test-server.ts'

/** For how long a watch outlives the store. */
export const STORE_GRACE_MS = 60_000

/** The sessions of one instance, without a server. */
export interface SessionInstance {
  readonly store: Store
  readonly sessions: SessionRepository
  readonly reader: SessionReader
  readonly endings: SessionWatcher
  /** The Cookie header of a session. */
  readonly cookie: (id: string) => string
}

/** An instance on this Redis, whatever its topology, that ends with the test. */
export async function sessionInstance(t: Test, url: string): Promise<SessionInstance> {
  return instanceOn(await connectedStore(t, url))
}

/** An instance on a store. */
export function instanceOn(store: Store, idleMs = 600_000, keepAlive = true): SessionInstance {
  const secrets = new Changeable([SECRETS])
  const cookie = new SessionCookie({ secure: true, prefix: '__Host-' }, secrets)
  const sessions = new SessionRepository(store, new Envelope(secrets), { idleMs, maxMs: 3_600_000 }, logNames(SECRETS))
  const reader = new SessionReader(cookie, sessions, store)
  const endings = new SessionWatcher(sessions, reader, store, { storeGraceMs: STORE_GRACE_MS, keepAlive })
  return {
    store,
    sessions,
    reader,
    endings,
    cookie: (id) => `${cookie.name}=${cookie.signer.sign(id)}`,
  }
}

let created = 0

/** A new session. @returns its id, which is new in this process alone */
export async function newSession({ sessions }: SessionInstance, more: Partial<SessionRecord> = {}): Promise<string> {
  const id = createHash('sha256').update(`session ${++created}`).digest('base64url')
  await sessions.create(id, sessionRecord(more))
  return id
}

/** A record like that of a login. */
export function sessionRecord(more: Partial<SessionRecord> = {}): SessionRecord {
  const endsAt = Date.now() + 3_600_000
  const times = { tokenExpiresAt: endsAt, tokenLifetimeMs: 3_600_000, endsAt }
  return {
    accessToken: 'token',
    refreshToken: 'refresh',
    scope: 'trade',
    loginKey: 'login',
    ...times,
    ...more,
  }
}
