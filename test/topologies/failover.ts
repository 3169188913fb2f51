import type { Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { newSession, sessionInstance } from '../support/session-instance.ts'
import { until, type Topology } from '../support/redis-topologies.ts'

const SESSIONS = 60

/**
 * Loses a master while two instances read. Sessions whose making was replicated live on, those whose logout was
 * stay dead, and in between a reader hears "store down" and never "no session".
 */
export async function survivesMasterLoss(t: Test, { url, masters }: Topology): Promise<void> {
  const [one, other] = [await sessionInstance(t, url), await sessionInstance(t, url)]
  const [alive, dead]: [string[], string[]] = [[], []]
  const unreplicated: string[] = []
  for (const instance of [one, other]) instance.sessions.onUnreplicatedEnd((key) => unreplicated.push(key))
  for (let count = 0; count < SESSIONS; count++) {
    const id = await newSession(one)
    t.equal(await one.store.isReplicated(sessionKey(id)), true)
    if (count % 2 === 0) alive.push(id)
    else {
      await other.reader.read(other.cookie(id))
      await one.sessions.end(sessionKey(id), 'logout')
      dead.push(id)
    }
  }
  t.same(unreplicated, [], 'every logout was confirmed by a replica')

  const seen = { live: 0, none: 0, storeDown: 0 }
  const down = { since: 0, until: 0 }
  const stage = { isOver: false }
  const load = async (at: number): Promise<void> => {
    const instance = at % 2 === 0 ? one : other
    while (!stage.isOver) {
      for (const id of alive) {
        const { is } = await instance.reader.read(instance.cookie(id))
        seen[is]++
        if (is === 'storeDown') down.until = Date.now()
      }
      await new Promise((resolve) => void setTimeout(resolve, 5))
    }
  }
  const loads = [0, 1, 2, 3].map(load)
  const [lost] = await masters()
  down.since = Date.now()
  await lost?.close()
  await until(async () => {
    const reads = await Promise.all(alive.map((id) => one.reader.reload(id)))
    const others = await Promise.all(alive.map((id) => other.reader.reload(id)))
    return down.until > 0 && [...reads, ...others].every(({ is }) => is === 'live')
  })
  stage.isOver = true
  await Promise.all(loads)
  t.comment(
    `${seen.live} reads, ${seen.storeDown} of them "store down"; recovered in ${down.until - down.since} ms`,
  )
  t.equal(seen.none, 0, 'nobody was told that there is no session')
  for (const id of dead)
    t.equal((await other.reader.reload(id)).is, 'none', 'a logout that was acknowledged stays')
  t.equal(await one.sessions.end(sessionKey(alive[0] ?? ''), 'logout'), true, 'and it can be written to')
}

/** A logout elsewhere, an operator's DEL and FLUSHALL reach what is held. */
export async function hearsEndings(t: Test, { url }: Topology): Promise<void> {
  const [holder, other] = [await sessionInstance(t, url), await sessionInstance(t, url)]
  for (const end of [
    (key: string) => other.sessions.end(key, 'logout'),
    (key: string) => other.store.remove(key),
  ]) {
    const id = await newSession(other)
    const key = sessionKey(id)
    const found = await holder.reader.read(holder.cookie(id))
    if (found.is !== 'live') throw new Error('not live')
    const ended = new Promise<string>((resolve) => void holder.endings.watch(found.session, resolve))
    const asked = Date.now()
    await end(key)
    t.equal(await ended, 'gone')
    t.comment(`heard after ${Date.now() - asked} ms`)
    await until(async () => (await holder.reader.read(holder.cookie(id))).is === 'none')
  }
}
