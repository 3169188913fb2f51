import { setImmediate } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Session, SessionRecord } from '../../../src/sessions/session.ts'
import type { TokenLookup } from '../../../src/sessions/token-renewal.ts'
import { SessionWatcher, type Watch } from '../../../src/sessions/watcher.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { instanceOn, newSession } from './session-instance.ts'

export const IDLE_MS = 600_000

/** A store that may be away, and may not report changes. */
export class OddStore extends MemoryStore {
  override readonly staleMs: number
  override readonly reportsBurials: true
  isAway = false
  burialWatches = 0
  readonly #listeners: ((key: string | undefined) => void)[] = []

  constructor(staleMs = Infinity, reportsBurials = true) {
    super()
    this.staleMs = staleMs
    this.reportsBurials = reportsBurials as true
  }

  override onChange(listener: (key: string | undefined) => void): void {
    super.onChange(listener)
    this.#listeners.push(listener)
  }
  override watchBurials(): void {
    this.burialWatches++
  }
  override async read(key: string): ReturnType<MemoryStore['read']> {
    if (this.isAway) throw new StoreUnavailable('away')
    return super.read(key)
  }
  /** Any key may have changed. */
  reportAll(): void {
    for (const listener of this.#listeners) listener(undefined)
  }
}

/** A watcher whose timers a test runs, and its sessions. */
export async function heldWatcher(
  t: Test,
  {
    store = new OddStore(),
    record = {},
    keepAlive = false,
    renew,
  }: {
    store?: OddStore
    record?: Partial<SessionRecord>
    keepAlive?: boolean
    renew?: (session: Session, client: Watch['client']) => Promise<TokenLookup>
  } = {},
) {
  const timers = new ManualTimers(t)
  const instance = instanceOn(store, IDLE_MS)
  const { sessions, reader } = instance
  const watched = new SessionWatcher(sessions, reader, store, {
    storeGraceMs: 5000,
    keepAlive,
    ...(renew !== undefined && { renew }),
  })
  // Half a step of the idle limit more than an hour.
  const endsAt = Date.now() + 3_630_000
  const id = await newSession(instance, { endsAt, ...record })
  await sessions.touch(id, record.endsAt ?? endsAt)
  const found = await reader.reload(id)
  if (found.is !== 'live') throw new Error(found.is)
  const { session } = found
  const told: string[] = []
  return {
    ...instance,
    store,
    session,
    watched,
    told,
    /** How many checks are scheduled. */
    scheduled: () => timers.delays.length,
    watch: async (more: Partial<Watch> = {}) => {
      const stop = watched.watch(session, { isUse: false, onEnd: (reason) => told.push(reason), ...more })
      await setImmediate()
      return stop
    },
    /** The pause until the next check (ms). */
    pause: () => timers.delays.at(-1),
    /** The time of the next check has come. */
    check: async () => {
      if (timers.delays.length === 0) t.fail('nothing is scheduled')
      timers.run()
      await setImmediate()
    },
  }
}
