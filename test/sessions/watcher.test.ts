import { test } from 'tap'
import type { Session } from '../../src/sessions/session.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { instanceOn, newSession, STORE_GRACE_MS, type SessionInstance } from '../support/sessions/session-instance.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

// In a process of its own: the timers of all others would be held, too.

/** A store that announces no changes, like a Cluster, and may be away. */
class DistantStore extends MemoryStore {
  override readonly staleMs = 1000 as number
  isAway = false

  override onChange(): void {
    // It announces nothing.
  }

  override async read(key: string): ReturnType<MemoryStore['read']> {
    if (this.isAway) throw new StoreUnavailable('away')
    return super.read(key)
  }
}

/** A new session, and the reasons that a watch of it is told. */
async function watched(instance: SessionInstance): Promise<{ session: Session; told: string[] }> {
  const found = await instance.reader.reload(await newSession(instance))
  if (found.is !== 'live') throw new Error(found.is)
  const told: string[] = []
  instance.endings.watch(found.session, { isUse: false, onEnd: (reason) => told.push(reason) })
  // The first check has found it.
  await instance.endings.confirm(found.session)
  return { session: found.session, told }
}

await test('a watch ends when the store was away for RELAY_STORE_GRACE_SECONDS, not sooner, and each outage counts for itself', async (t) => {
  const ahead = clockAhead(t)
  const store = new DistantStore()
  const instance = instanceOn(store)
  const { session, told } = await watched(instance)
  /** Time passes, in which this process does not stand still. @returns whether the store could be asked then */
  const isAskedAfter = (ms: number): Promise<boolean> => {
    for (let passedMs = 0; passedMs < ms; passedMs += 250) {
      ahead(250)
      standstill.now()
    }
    return instance.endings.confirm(session)
  }
  for (const outage of ['first', 'second']) {
    store.isAway = true
    t.equal(await isAskedAfter(2000), false)
    t.equal(await isAskedAfter(STORE_GRACE_MS - 1000), false)
    t.same(told, [], outage)
    store.isAway = false
    t.equal(await isAskedAfter(2000), true)
  }
  store.isAway = true
  t.equal(await isAskedAfter(2000), false)
  t.equal(await isAskedAfter(STORE_GRACE_MS), false)
  t.same(told, ['storeLost'])
})

for (const reason of ['logout', 'refused', 'revoked', 'replaced'] as const) {
  const when = reason === 'replaced' ? 'a second later, when the page can have its new cookie' : 'at once'
  await test(`a watch is told that its session has ended (${reason}) ${when}`, async (t) => {
    const held = new HeldTimers(t, 'setTimeout', 1000)
    const instance = instanceOn(new MemoryStore())
    const { session, told } = await watched(instance)
    await instance.sessions.end(session.key, reason)
    t.same(told, reason === 'replaced' ? [] : [reason])
    held.run()
    t.same(told, [reason])
  })
}

await test('a watch that fails when its session ends leaves no other one untold', async (t) => {
  const instance = instanceOn(new MemoryStore())
  const { session, told } = await watched(instance)
  const onEnd = (reason: string): void => {
    if (told.push(reason) % 2 === 0) throw new TypeError('planted')
  }
  for (let count = 0; count < 3; count++) instance.endings.watch(session, { isUse: true, onEnd })
  await t.rejects(instance.sessions.end(session.key, 'logout'), /planted/)
  t.same(told, ['logout', 'logout', 'logout', 'logout'])
  t.equal(await instance.endings.confirm(session), true)
})
