import type { Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { askRedis, type Topology } from '../support/redis/topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

const SESSIONS = 60

/**
 * Loses a master while two instances read sessions. Asserts that replicated sessions live on, that replicated logouts
 * persist, and that in between a reader gets `storeDown` and never `none`.
 */
export async function assertMasterLossIsSurvived(
  t: Test,
  { url, masters }: Topology,
  lose = (master: RedisProcess): unknown => master.close(),
): Promise<void> {
  const [one, other] = [await sessionInstance(t, url), await sessionInstance(t, url)]
  const [alive, dead]: [string[], string[]] = [[], []]
  const unreplicated: string[] = []
  for (const instance of [one, other]) instance.sessions.endings.onUnreplicated((key) => unreplicated.push(key))
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
  const over = new AbortController()
  // Otherwise a test that fails would never end.
  t.teardown(() => over.abort())
  const load = async (reader: number): Promise<void> => {
    const instance = reader % 2 === 0 ? one : other
    while (!over.signal.aborted) {
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
  if (lost === undefined) throw new Error('no master')
  await lose(lost)
  await until(async () => {
    const reads = await Promise.all(alive.map((id) => one.reader.reload(id)))
    const others = await Promise.all(alive.map((id) => other.reader.reload(id)))
    return down.until > 0 && [...reads, ...others].every(({ is }) => is === 'live')
  })
  over.abort()
  await Promise.all(loads)
  t.comment(
    `${seen.live} live reads, ${seen.storeDown} with the store down; recovered in ${down.until - down.since} ms`,
  )
  t.equal(seen.none, 0, 'no read missed a live session')
  for (const id of dead) t.equal((await other.reader.reload(id)).is, 'none', 'an acknowledged logout persists')
  t.equal(await one.sessions.end(sessionKey(alive[0] ?? ''), 'logout'), true, 'the store accepts writes again')
}

/** Makes a server hang: it keeps its connections open and replies to nothing. */
export function freeze({ process }: RedisProcess): void {
  process.kill('SIGSTOP')
}

/** Asserts that watchers and near caches of three instances notice a logout, a DEL and a FLUSHALL. */
export async function assertEndedSessionsAreNoticed(t: Test, { url, masters }: Topology): Promise<void> {
  const instances = [await sessionInstance(t, url), await sessionInstance(t, url), await sessionInstance(t, url)]
  const [first] = instances
  if (first === undefined) throw new Error('no instance')
  const askMasters = async (...command: string[]) =>
    Promise.all((await masters()).map((master) => askRedis(master, command)))
  for (const [event, end] of [
    ['a logout', (key: string) => first.sessions.end(key, 'logout')],
    // The masters that do not have the key reply with an error.
    ['DEL', (key: string) => askMasters('DEL', key)],
    ['FLUSHALL', () => askMasters('FLUSHALL')],
  ] as const) {
    const id = await newSession(first)
    const key = sessionKey(id)
    const watchers = instances.map(async ({ reader, endings, cookie }) => {
      const found = await reader.read(cookie(id))
      if (found.is !== 'live') throw new Error('not live')
      return () => new Promise<string>((resolve) => void endings.watch(found.session, { isUse: true, onEnd: resolve }))
    })
    const notified = (await Promise.all(watchers)).map((watch) => watch())
    const endedAt = Date.now()
    await end(key)
    await Promise.all(notified)
    const watchersMs = Date.now() - endedAt
    for (const { reader, cookie } of instances) await until(async () => (await reader.use(cookie(id))).is === 'none')
    const requestsMs = Date.now() - endedAt
    t.comment(`${event}: watchers are notified after ${watchersMs} ms, requests notice after ${requestsMs} ms`)
    // It takes about a second; the bound leaves room for a busy machine.
    t.ok(requestsMs < 3000, `${event}: every instance has noticed within 3 s`)
  }
}
