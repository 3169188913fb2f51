import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { randomFrom } from '../../sandbox/upstream/market.ts'
import type { DurableRedis } from '../support/redis/durable-redis.ts'
import type { DurableTopology } from '../support/redis/durable-topologies.ts'
import { KeyedStorm, type Loss } from '../support/idempotency/keyed-storm.ts'
import { OrderUpstream } from '../support/idempotency/order-upstream.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { ALONE } from '../support/server/settings.ts'
import { untilSlow } from '../support/time/until.ts'
import { SECRETS } from '../support/server/test-server.ts'

const KEYS = Number(process.env['KEYS'] ?? 2000)
const FAILOVERS = Number(process.env['FAILOVERS'] ?? 10)
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const SESSIONS = 10
/** How long one failover takes, with the pauses around it. */
const FAILOVER_MS = 18_000
const REPEAT_WITHIN_MS = 12_000
const SETTLED_MS = 1000

/** How a master is lost. The storm goes through all of them in turn. */
const WAYS = ['killed', 'replaced', 'stopped', 'replacedBehind', 'killed', 'replacedAbruptly'] as const
/** How long replicas lack what their master is told before one of them takes over. */
const BEHIND_MS = 1500

/** Sends many keys while instances are killed and masters are lost, and asserts that upstream saw none twice. */
export async function stormThroughFailovers(
  t: Test,
  topology: DurableTopology,
  settings: Record<string, string>,
): Promise<void> {
  t.comment(`SEED=${SEED}`)
  const random = randomFrom(SEED)
  const upstream = await OrderUpstream.start(t)
  const sessions = await sessionInstance(t, topology.url)
  const ids = await Promise.all(Array.from({ length: SESSIONS }, () => newSession(sessions)))
  await pause(SETTLED_MS)
  const ports = [await freePort(), await freePort(), await freePort()]
  const start = (port: number) =>
    serverProcess(t, {
      ...ALONE,
      API_URL: upstream.url,
      REDIS_URL: topology.url,
      SESSION_SECRETS: SECRETS,
      PUBLIC_URL: `http://localhost:${ports[0]}`,
      LOG_LEVEL: 'warn',
      ...settings,
      PORT: String(port),
    })
  const servers = await Promise.all(ports.map(start))
  t.same(await Promise.all(servers.map((each) => ready(each))), [true, true, true])

  const cookies = ids.map(sessions.cookie)
  const spreadMs = FAILOVERS * FAILOVER_MS
  const storm = new KeyedStorm({
    upstream,
    ports,
    cookies,
    keys: KEYS,
    spreadMs,
    repeatWithinMs: REPEAT_WITHIN_MS,
    random,
  })
  const isOver = new AbortController()
  let kills = 0
  const killInstances = async (): Promise<void> => {
    while (!isOver.signal.aborted) {
      await pause(8000 + random() * 8000)
      const index = Math.floor(random() * servers.length)
      const [server, port] = [servers[index], ports[index]]
      if (server === undefined || port === undefined) throw new Error('no server')
      server.child.kill('SIGKILL')
      await server.exited
      kills++
      servers[index] = await start(port)
    }
  }
  const losses: Loss[] = []
  const loseMasters = async (): Promise<void> => {
    for (let count = 0; count < FAILOVERS; count++) {
      await untilSlow(() => topology.isWhole(), 'all servers are there')
      await pause(1000 + random() * 2000)
      losses.push(await lose(topology, WAYS[count % WAYS.length] ?? 'killed', random))
    }
    await untilSlow(() => topology.isWhole(), 'all servers are there')
  }
  const killing = [killInstances(), loseMasters()]
  await storm.run()
  isOver.abort()
  await Promise.all(killing)
  for (const server of servers) t.ok(await ready(server))
  await storm.settle()

  t.comment(JSON.stringify({ ...storm.counts, kills, failovers: losses.length }))
  t.same(storm.sentTwice, [], 'upstream saw no key twice')
  t.same(storm.faults(losses), [])
  t.equal(losses.length, FAILOVERS)
  t.same(await storm.faultsOfOtherCalls(), [])
  await comeBackEmpty(topology)
  await storm.settle()
  t.comment(`a master came back without its data: ${storm.sentTwice.length} of ${KEYS} keys were sent twice`)
}

/** Has a master lose its data, before any replica can take over. Nothing protects records from that, so it is only counted. */
async function comeBackEmpty(topology: DurableTopology): Promise<void> {
  const [master] = await topology.masters()
  if (master === undefined) throw new Error('no master')
  await master.kill()
  await master.forget()
  await master.restart()
  await untilSlow(() => topology.isWhole(), 'all servers are there')
}

/** Loses a master, and has it back in the end. */
async function lose(topology: DurableTopology, way: (typeof WAYS)[number], random: () => number): Promise<Loss> {
  const masters = await topology.masters()
  const master = masters[Math.floor(random() * masters.length)]
  if (master === undefined) throw new Error('no master')
  const from = performance.now() - SETTLED_MS
  const awayMs = 300 + random() * 11_700
  switch (way) {
    case 'killed':
      await master.kill()
      await pause(awayMs)
      await master.restart()
      break
    case 'stopped':
      master.freeze()
      await pause(awayMs)
      // From here on it does what it was told while it was stopped, as the master that it believes to be.
      master.thaw()
      break
    case 'replaced':
    case 'replacedAbruptly':
    case 'replacedBehind':
      if (way === 'replacedBehind') await keepReplicasBehind(master)
      await topology.replace(master, way !== 'replaced')
      await isNoMaster(topology, master)
  }
  return { from, to: performance.now() + FAILOVER_MS }
}

/** Cuts replicas off again and again, so that they lack what their master is told meanwhile. */
async function keepReplicasBehind(master: DurableRedis): Promise<void> {
  const until = performance.now() + BEHIND_MS
  while (performance.now() < until) {
    await askRedis(master, ['CLIENT', 'KILL', 'TYPE', 'REPLICA'])
    await pause(10)
  }
}

/** A replacement that fails because the topology is still busy is no failure of the test. */
async function isNoMaster(topology: DurableTopology, master: DurableRedis): Promise<void> {
  const giveUpAt = performance.now() + FAILOVER_MS
  while (performance.now() < giveUpAt && (await topology.masters()).includes(master)) await pause(100)
}
