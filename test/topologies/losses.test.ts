import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { sessionKey, besideKey } from '../../src/store/keys.ts'
import type { RedisStore } from '../../src/store/redis-store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { DurableRedis } from '../support/redis/durable-redis.ts'
import { durableCluster, durableSentinel, type DurableTopology } from '../support/redis/durable-topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

/** The figures of docs/operating/redis.md are of three rounds. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 1)
const LOAD_MS = 1500
/** For how long the replicas have stood still when the master is lost. */
const LAG_MS = 300

type Topology = Pick<DurableTopology, 'url' | 'nodes' | 'masters' | 'isWhole'>

/** The kinds of records, by what a caller was told about them. */
interface Told {
  /** Created without waiting, as sessions, permits and counters are. */
  readonly written: string[]
  /** Ended, and a replica has confirmed it, where there is one. */
  readonly ended: string[]
  /** Ended, and no replica has confirmed it in time, which operators are told. */
  readonly endedAlone: string[]
  /** Created and confirmed, as records of an Idempotency-Key and controls are. */
  readonly confirmed: string[]
}

async function durableSingle(t: Test): Promise<Topology> {
  const redis = await DurableRedis.start(t, await freePort(), [])
  return { url: redis.url, nodes: [redis], masters: async () => [redis], isWhole: async () => true }
}

/** Writes until the abort. Failures are no losses: the caller was told. */
async function write(store: RedisStore, replicas: number, told: Told, name: string, over: AbortSignal): Promise<void> {
  const confirmed = replicas === 0 ? store : await store.openConfirmed(replicas)
  const expiresAt = Date.now() + 3_600_000
  const repeat = async (kind: string, once: (key: string) => Promise<unknown>): Promise<void> => {
    for (let count = 0; !over.aborted; count++) await once(sessionKey(`${name} ${kind} ${count}`)).catch(() => delay(5))
  }
  await Promise.all([
    repeat('written', async (key) => {
      if (await store.create(key, 'v', expiresAt)) told.written.push(key)
    }),
    repeat('confirmed', async (key) => {
      if (await confirmed.create(key, 'v', expiresAt)) told.confirmed.push(key)
    }),
    repeat('ended', async (key) => {
      await store.create(key, 'v', expiresAt)
      // It ends later than it was written, or the loss of both would look like an end.
      await store.isReplicated(key)
      const tombstone = {
        key: besideKey(key, 'tombstone'),
        leftKey: besideKey(key, 'left'),
        value: 'logout',
        expiresAt,
      }
      if ((await store.bury(key, tombstone)) === undefined) return
      const list = (await store.isReplicated(key)) === false ? told.endedAlone : told.ended
      list.push(key)
    }),
  ])
}

/** Loses a master under load, and lets it come back. */
async function round(store: RedisStore, topology: Topology, name: string, replicas: number): Promise<Told> {
  const told: Told = { written: [], ended: [], endedAlone: [], confirmed: [] }
  const over = new AbortController()
  const writing = write(store, replicas, told, name, over.signal)
  await delay(LOAD_MS)
  const masters = await topology.masters()
  const [lost] = masters
  const others = topology.nodes.filter((node) => !masters.includes(node))
  for (const node of others) node.freeze()
  if (replicas > 0) await delay(LAG_MS)
  await lost?.kill()
  for (const node of others) node.thaw()
  if (replicas === 0) await lost?.restart()
  await until(() => store.create(`${name} probe`, 'v', Date.now() + 1000).catch(() => false))
  if (replicas > 0) {
    await until(async () => (await topology.masters()).length === masters.length, 'a replica was promoted')
    await lost?.restart()
  }
  over.abort()
  await writing
  await until(topology.isWhole, 'all replicas are online')
  return told
}

/** How many of these records are gone. A client that has just learned of a new master closes connections, so reads may fail. */
async function missing(store: RedisStore, keys: readonly string[]): Promise<number> {
  let count = 0
  const readAll = async (): Promise<true> => {
    const found = await Promise.all(keys.map((key) => store.readUntracked(key)))
    count = found.filter((each) => each === undefined).length
    return true
  }
  await until(() => readAll().catch(() => false), 'everything can be read')
  return count
}

for (const [where, start, replicas] of [
  ['A single Redis that is killed and restarted', durableSingle, 0],
  ['Behind Sentinels', (t: Test) => durableSentinel(t, 1), 1],
  ['On a Cluster', durableCluster, 1],
] as const) {
  await test(`${where}, what was confirmed survives the loss of a master`, async (t) => {
    const topology = await start(t)
    const store = await connectedStore(t, topology.url)
    for (let count = 0; count < ROUNDS; count++) {
      const told = await round(store, topology, `round ${count}`, replicas)
      const lost = {
        written: await missing(store, told.written),
        ended: told.ended.length - (await missing(store, told.ended)),
        endedAlone: told.endedAlone.length - (await missing(store, told.endedAlone)),
        confirmed: await missing(store, told.confirmed),
      }
      for (const [kind, number] of Object.entries(lost)) {
        t.comment(`${kind}: ${number} of ${told[kind as keyof Told].length} lost`)
      }
      t.equal(lost.confirmed, 0)
      t.equal(lost.ended, 0)
      t.ok(told.confirmed.length > 20)
    }
  })
}
