import { createClient } from 'redis'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { randomFrom } from '../../sandbox/upstream/market.ts'
import { KeyedStorm, type Loss } from '../support/keyed-storm.ts'
import { OrderUpstream } from '../support/order-upstream.ts'
import { testSentinel } from '../support/redis-topologies.ts'
import { ready, serverProcess } from '../support/server-process.ts'
import { newSession, sessionInstance } from '../support/session-instance.ts'
import { ALONE } from '../support/settings.ts'
import { untilSlow } from '../support/until.ts'
import { SECRETS } from '../support/world.ts'

const KEYS = 2000
const SESSIONS = 10
const SPREAD_MS = 60_000
/** A replica has a write after some milliseconds. This is how long it might take on a busy machine. */
const REPLICATION_MS = 1000
/** Long enough for a busy machine not to be taken for a dead master: what a master takes that lives and is replaced is lost. */
const DOWN_MS = 5000
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

await test(
  '2,000 keys are sent at most once, while instances and Redis are killed',
  { timeout: 400_000 },
  async (t) => {
    t.comment(`SEED=${SEED}`)
    const random = randomFrom(SEED)
    const upstream = await OrderUpstream.start(t)
    const topology = await testSentinel(t, undefined, DOWN_MS)
    const masters = await announcedMasters(t, topology.sentinels)
    const sessions = await sessionInstance(t, topology.url)
    const ids = await Promise.all(Array.from({ length: SESSIONS }, () => newSession(sessions)))
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    const settings = {
      ...ALONE,
      API_URL: upstream.url,
      REDIS_URL: topology.url,
      SESSION_SECRETS: SECRETS,
      PUBLIC_URL: `http://localhost:${ports[0]}`,
    }
    const start = (port: number) => serverProcess(t, { ...settings, PORT: String(port) })
    const servers = await Promise.all(ports.map(start))
    t.same(await Promise.all(servers.map(ready)), [true, true, true])

    const cookies = ids.map(sessions.cookie)
    const storm = new KeyedStorm({ upstream, ports, cookies, keys: KEYS, spreadMs: SPREAD_MS, random })
    const isOver = new AbortController()
    const losses: Loss[] = []
    let kills = 0
    const killInstances = async (): Promise<void> => {
      while (!isOver.signal.aborted) {
        await pause(3000 + random() * 4000)
        const index = Math.floor(random() * servers.length)
        const server = servers[index]
        const port = ports[index]
        if (server === undefined || port === undefined) throw new Error('no server')
        server.child.kill('SIGKILL')
        await server.exited
        kills++
        servers[index] = await start(port)
      }
    }
    const killMasters = async (): Promise<void> => {
      for (const atMs of [15_000, 35_000]) {
        await pause(atMs === 15_000 ? 15_000 : 20_000)
        const [master] = await topology.masters()
        const from = performance.now() - REPLICATION_MS
        await master?.close()
        await untilSlow(async () => (await topology.masters()).length > 0, 'a replica has taken over')
        losses.push({ from, to: performance.now() })
      }
    }
    const killing = [killInstances(), killMasters()]
    await storm.run()
    isOver.abort()
    await Promise.all(killing)
    for (const server of servers) t.ok(await ready(server))
    await storm.settle()

    const { faults, lost } = storm.faults(losses)
    t.comment(JSON.stringify({ ...storm.counts, kills, failovers: losses.length }))
    t.comment(`sent twice because a failover lost the record: ${lost.length} ${JSON.stringify(lost)}`)
    t.same(faults, [])
    t.ok(kills > 3 && losses.length === 2)
    t.ok(masters.size <= 2, 'no master has been replaced but those that were killed')
    t.same(await storm.faultsOfOtherCalls(), [])
  },
)

/** Collects the ports of the masters that the Sentinels announce. */
async function announcedMasters(t: Test, sentinels: readonly RedisProcess[]): Promise<Set<string>> {
  const ports = new Set<string>()
  for (const { url } of sentinels) {
    const client = createClient({ url })
    client.on('error', () => undefined)
    t.teardown(() => client.destroy())
    await client.connect()
    // "bff <old host> <old port> <new host> <new port>"
    await client.subscribe('+switch-master', (message) => void ports.add(message.split(' ')[4] ?? ''))
  }
  return ports
}
