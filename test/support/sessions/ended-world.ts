import { setImmediate } from 'node:timers/promises'
import type { Test } from 'tap'
import { Endings, type Ending } from '../../../src/sessions/endings.ts'
import { besideKey, sessionKey } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { HeldTimers } from '../time/held-timers.ts'
import { lossyStore } from './lossy-store.ts'
import { sessionRecord } from './session-instance.ts'

export const HOUR_MS = 3_600_000
/** Whoever has claimed an end is done with it by then. */
export const CLAIM_MS = 6_000
/** The session of the world. */
export const KEY = sessionKey('id')
/** What is left of it. */
export const LEFT = besideKey(KEY, 'left')
/** A revocation that its process does not survive. */
export const never = new Promise<void>(() => undefined)

/** Instances on one store, and all that they record and revoke. */
export async function endedWorld(t: Test) {
  const store = new MemoryStore()
  const [recorded, revoked]: [string[], string[]] = [[], []]
  const instance = (at: string, revocation: Promise<void> | undefined = Promise.resolve()) => {
    const lossy = lossyStore(store)
    const record = sessionRecord()
    const endings = new Endings(lossy.store, () => ({ record }))
    endings.onRecord(({ reason }: Ending) => recorded.push(`${at} ${reason}`))
    endings.onRevoke(() => {
      revoked.push(at)
      return revocation
    })
    const logout = async () => endings.end(KEY, 'logout', { id: 'id' }, true)
    return { lossy, endings, logout, stop: () => (lossy.isAway = true) }
  }
  const left = async () => (await store.readUntracked(LEFT))?.value
  await store.create(KEY, 'v1.sealed', Date.now() + HOUR_MS)
  return { store, recorded, revoked, instance, left, claims: new HeldTimers(t, 'setTimeout', CLAIM_MS) }
}

/** All that is due has happened. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate()
}
