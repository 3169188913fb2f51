import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { NearCache } from '../../../src/sessions/near-cache.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import { sessionKey } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { StoredValue } from '../../../src/store/store.ts'
import { standstill } from '../../../src/time/standstill.ts'
import { logNames } from '../server/settings.ts'
import { sessionRecord } from './session-instance.ts'

/** A store that may be slow, or fail. */
class OddStore extends MemoryStore {
  readonly reads: string[] = []
  before: () => Promise<void> = async () => undefined
  isSilent = false

  override onChange(listener: (key: string | undefined) => void): void {
    super.onChange((key) => !this.isSilent && listener(key))
    this.reportAll = () => listener(undefined)
  }
  /** Any key may have changed. */
  reportAll: () => void = () => undefined

  override async read(key: string): Promise<StoredValue | undefined> {
    this.reads.push(key)
    const value = await super.read(key)
    await this.before()
    return value
  }
}

/** A cache, and the sessions `one` and `two`, which it has read. Its clocks stand still unless a test moves them. */
export async function cacheWith(
  t: Test,
  {
    staleMs = Infinity,
    hasRunningClocks = false,
    ...limits
  }: { staleMs?: number; hasRunningClocks?: boolean; maxUnreadMs?: number } = {},
) {
  let aheadMs = 0
  for (const clock of [performance, Date]) {
    const now = clock.now.bind(clock)
    const startedAt = now()
    // On a busy machine this process would really stand still.
    t.intercept(clock, 'now', { value: () => (hasRunningClocks ? now() : startedAt) + aheadMs })
  }
  const pass = (ms: number): void => void (aheadMs += ms)
  const store = Object.assign(new OddStore(), { staleMs })
  const envelope = new Envelope(new Changeable(['a-secret-of-thirty-two-bytes-or-more']))
  const sessions = new SessionRepository(store, envelope, { idleMs: 600_000, maxMs: 3_600_000 }, logNames('tags'))
  const near = new NearCache(sessions, store, limits)
  const { refreshToken: _, ...withoutRefresh } = sessionRecord()
  for (const id of ['one', 'two']) {
    await sessions.create(id, id === 'one' ? sessionRecord() : withoutRefresh)
    await near.load(id)
  }
  store.reads.length = 0
  return {
    store,
    near,
    pass,
    anew: () => new NearCache(sessions, store, limits),
    end: (id: string) => sessions.end(sessionKey(id), 'logout'),
    /** Which of the sessions the cache knows. */
    known: () => ['one', 'two'].filter((id) => near.peek(id, sessionKey(id)) !== undefined),
    current: () => ['one', 'two'].filter((id) => near.isCurrent({ id, key: sessionKey(id) })),
    /** Time passes, in which this process does not stand still. */
    live: (ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 250) {
        pass(250)
        standstill.now()
      }
    },
  }
}
