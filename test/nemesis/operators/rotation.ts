import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { SECRETS } from '../../support/server/test-server.ts'
import type { Fleet } from '../fleet.ts'

/** An instance has taken a file that changed after so long (docs/operating/rotation-and-upgrades.md). */
const TAKEN_MS = 17_000
const FIRST_MS = 3000

/** Rotates SESSION_SECRETS in the two steps that the documents name, again and again. Nobody may notice it. */
export async function rotateSecrets({ instances, observer }: Fleet, over: AbortSignal): Promise<void> {
  let known = [SECRETS]
  const write = async (list: readonly string[], forMs: number): Promise<void> => {
    if (over.aborted) return
    for (const { secrets } of instances) secrets.change({ SESSION_SECRETS: list.join(',') })
    known = [...list]
    await pause(forMs, undefined, { signal: over }).catch(() => undefined)
  }
  await pause(FIRST_MS, undefined, { signal: over }).catch(() => undefined)
  while (!over.aborted) {
    const fresh = randomBytes(32).toString('hex')
    await write([...known, fresh], TAKEN_MS)
    if (!over.aborted) observer.history.rotations.push(observer.now())
    await write([fresh, ...known.slice(0, -1)], TAKEN_MS)
  }
}
