import { setTimeout as pause } from 'node:timers/promises'
import { samplesOf } from '../../support/telemetry/metrics.ts'
import type { Fault } from '../fault.ts'
import type { Fleet } from '../fleet.ts'
import { opsUrl } from '../operators/pauses.ts'
import { replicatedIn, type Replicated } from '../take-over.ts'
import { WRITES_ARE_LOST, withoutRedis } from '../whom.ts'

/** The replicas are behind for so long at a time, which is less than the time for which an end waits for one of them. */
const BEHIND_MS = 110
const CAUGHT_UP_MS = 40
const LOOKS_MS = 3
const FOLLOWED_MS = 12_000

/** A replica takes over at the moment when somebody is told that their session has ended. */
export const failedOverAfterAnEnd: Fault = {
  name: 'redis-failed-over-after-an-end',
  sentence:
    'The replicas of a master are a tenth of a second behind. It dies as soon as a logout was confirmed, and one of them takes over.',
  fits: ({ redis }) => redis === 'sentinel',
  lastsMs: { least: 15_000, most: 20_000 },
  async apply(fleet) {
    const servers = await replicatedIn(fleet)
    const healing = new AbortController()
    const isTakenOver = lostAfterAnEnd(fleet, servers, healing.signal)
    return {
      note: 'the master dies after a logout, and its replicas are behind',
      touches: [...withoutRedis(), ...WRITES_ARE_LOST],
      settleMs: FOLLOWED_MS,
      async heal() {
        healing.abort()
        if (await isTakenOver) await servers.comeBack()
      },
    }
  },
}

/** @returns false if nobody has logged out before the fault is healed */
async function lostAfterAnEnd(fleet: Fleet, servers: Replicated, healing: AbortSignal): Promise<boolean> {
  const { now } = fleet.observer
  let unconfirmed = await unconfirmedEnds(fleet)
  while (!healing.aborted) {
    servers.freeze()
    const frozenAt = now()
    while (now() < frozenAt + BEHIND_MS) {
      if (isEndedSince(fleet, frozenAt)) {
        // Others may be undone, and operators know of it.
        const before = unconfirmed
        unconfirmed = await unconfirmedEnds(fleet)
        if (unconfirmed === before) return servers.takeOver().then(() => true)
        break
      }
      await pause(LOOKS_MS)
    }
    servers.thaw()
    await pause(CAUGHT_UP_MS)
  }
  return false
}

/** Whether a logout was confirmed since then. */
function isEndedSince({ observer: { history } }: Fleet, since: number): boolean {
  return history.endings.some(({ by, confirmedAt = 0 }) => by === 'user' && confirmedAt > since)
}

/** How many ends no replica has confirmed, as the instances say; NaN if one says nothing. */
async function unconfirmedEnds({ instances }: Fleet): Promise<number> {
  const counts = instances.map(async (instance) => {
    const values = await samplesOf(opsUrl(instance), 'bff_session_ends_unreplicated_total').catch(() => undefined)
    return values === undefined ? NaN : [...values.values()].reduce((sum, value) => sum + value, 0)
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
