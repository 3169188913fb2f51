import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { SeenSession } from '../../../src/sessions/endings.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { SessionCookie } from '../../../src/sessions/session-cookie.ts'
import { SessionReader } from '../../../src/sessions/session-reader.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { logNames } from '../server/settings.ts'
import { stoppedClocks } from '../time/stopped-clocks.ts'
import { sessionRecord } from './session-instance.ts'

export const IDLE_MS = 600_000
export const SECRET = 'the first secret of a test'

/** A reader, and all that it asks of the store. The clocks stand. */
export async function heldReader(t: Test, { isTracked = true } = {}) {
  const pass = stoppedClocks(t)
  const store = Object.assign(new MemoryStore(), isTracked ? {} : { staleMs: 1000 })
  const secrets = new Changeable<readonly string[]>([SECRET])
  const cookie = new SessionCookie({ secure: true, prefix: '__Host-' }, secrets)
  const limits = { idleMs: IDLE_MS, maxMs: 3_600_000 }
  const sessions = new SessionRepository(store, new Envelope(new Changeable([SECRET])), limits, logNames(SECRET))
  const reader = new SessionReader(cookie, sessions, store)
  const asked: string[] = []
  const lost: SeenSession[] = []
  const world = { fault: undefined as unknown, isReadOnly: false }
  const [read, extend] = [store.read.bind(store), store.extend.bind(store)]
  const ask = (what: string): void => {
    asked.push(what)
    if (world.fault !== undefined) throw world.fault
  }
  store.read = async (key) => (ask('read'), read(key))
  store.extend = async (key, until) => (ask('extend'), world.isReadOnly ? read(key) : extend(key, until))
  sessions.endings.recordLoss = async (seen) => void lost.push({ ...seen })
  await sessions.create('id', sessionRecord())
  const header = `${cookie.name}=${cookie.signer.sign('id')}`
  /** What the store was asked since the last call. */
  const news = (): string[] => asked.splice(0)
  return { pass, store, secrets, cookie, sessions, reader, world, lost, header, news }
}
