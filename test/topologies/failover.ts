import type { Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { newSession, sessionInstance } from '../support/session-instance.ts'
import { askRedis, type Topology } from '../support/redis-topologies.ts'
import { untilSlow as until } from '../support/until.ts'

const SESSIONS = 60

/**
 * Loses a master while two instances read. Sessions whose making was replicated live on, those whose logout was
 * stay dead, and in between a reader hears "store down" and never "no session".
 */
export async function survivesMasterLoss(
  t: Test,
  { url, masters }: Topology,
  lose = (master: RedisProcess): unknown => master.close(),
): Promise<void> {
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
  if (lost === undefined) throw new Error('no master')
  await lose(lost)
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

/** A server that hangs, or is cut off: it holds its connections and says nothing. */
export function freeze({ process }: RedisProcess): void {
  process.kill('SIGSTOP')
}

/** A logout elsewhere, an operator's DEL and FLUSHALL reach what is held on every instance, and what is held near. */
export async function hearsEndings(t: Test, { url, masters }: Topology): Promise<void> {
  const instances = [
    await sessionInstance(t, url),
    await sessionInstance(t, url),
    await sessionInstance(t, url),
  ]
  const [first] = instances
  if (first === undefined) throw new Error('no instance')
  const atMasters = async (...command: string[]) =>
    Promise.all((await masters()).map((master) => askRedis(master, command)))
  for (const [what, end] of [
    ['a logout', (key: string) => first.sessions.end(key, 'logout')],
    // Those that do not have the key say so.
    ['DEL', (key: string) => atMasters('DEL', key)],
    ['FLUSHALL', () => atMasters('FLUSHALL')],
  ] as const) {
    const id = await newSession(first)
    const key = sessionKey(id)
    const held = instances.map(async ({ reader, endings, cookie }) => {
      const found = await reader.read(cookie(id))
      if (found.is !== 'live') throw new Error('not live')
      return () => new Promise<string>((resolve) => void endings.watch(found.session, resolve))
    })
    const ended = (await Promise.all(held)).map((watch) => watch())
    const asked = Date.now()
    await end(key)
    await Promise.all(ended)
    const heardMs = Date.now() - asked
    for (const { reader, cookie } of instances)
      await until(async () => (await reader.read(cookie(id))).is === 'none')
    t.comment(`${what}: held sessions hear after ${heardMs} ms, requests after ${Date.now() - asked} ms`)
    t.ok(Date.now() - asked < 3000, 'of the order of a second, on a busy machine too')
  }
}
