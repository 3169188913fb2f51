import { Pool } from 'undici'
import { freePort } from '../../sandbox/listening.ts'
import { BROWSER_HEADERS, logInMany, publicOrigin, settingsOf, startThisServer } from '../contenders.ts'
import type { Program } from '../program.ts'
import { shown, type Report } from '../report.ts'
import { apiUrl, type Choice } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'
import { startRedis, startReplicaOf, startWorld, type World } from '../world.ts'

const ROUNDS = 9
const CALLS = 1500
const WARM_UP_CALLS = 3000
const AT_ONCE = 8
const WITHOUT = 'without a key'
const WITH = 'with a key'
const CONFIRMED = 'with a key, confirmed by a replica'
/** As many keys as one session may use, since this load has only a few sessions. */
const LIMITS = { IDEMPOTENCY_MAX_RECORDS: '100000', IDEMPOTENCY_MAX_KEPT_BYTES: '1000000000' }

interface Calls {
  readonly name: string
  readonly world: World
  readonly program: Program
  readonly port: number
  readonly cookie: string
  readonly hasKey: boolean
}

interface Round {
  readonly cpuMicros: number
  readonly redisCommands: number
  readonly redisMicros: number
  readonly p50Ms: number
}

let keys = 0

/** Measures a POST without an Idempotency-Key, with one, with one that a replica confirms, and the first two in another checkout. */
export async function keyed({ before }: Choice): Promise<Report> {
  const [port, confirmedPort, beforePort] = [await freePort(), await freePort(), await freePort()]
  const uris = [port, confirmedPort, beforePort].map((each) => `${publicOrigin(each)}/auth/callback`)
  const world = await startWorld(uris)
  const replicated = { ...world, redis: await startRedis() }
  await startReplicaOf(replicated.redis)
  const server = await started(world, port)
  const confirming = await started(replicated, confirmedPort, { settings: { IDEMPOTENCY_REPLICAS: '1' } })
  const kinds: Calls[] = [
    { ...server, name: WITHOUT, hasKey: false },
    { ...server, name: WITH, hasKey: true },
    { ...confirming, name: CONFIRMED, hasKey: true },
  ]
  if (before !== undefined) {
    const other = await started(world, beforePort, { root: before })
    kinds.push(
      { ...other, name: `before, ${WITHOUT}`, hasKey: false },
      { ...other, name: `before, ${WITH}`, hasKey: true },
    )
  }
  for (const kind of kinds) await measure(kind, WARM_UP_CALLS)
  const results = await rounds(kinds, ROUNDS, (kind) => measure(kind, CALLS))
  const of = (name: string, figure: keyof Round): number[] => results.get(name)?.map((round) => round[figure]) ?? []
  return {
    name: 'keyed',
    title: 'A POST with an Idempotency-Key',
    tables: [
      {
        title: 'A response of 1.1 KB; each key is new',
        columns: ['', 'CPU µs per call', 'without a key = 1', 'Redis commands', 'Redis CPU µs', 'p50 ms'],
        rows: kinds.map(({ name }) => [
          name,
          shown(spread(of(name, 'cpuMicros')), 0),
          shown(ratio(of(name, 'cpuMicros'), of(WITHOUT, 'cpuMicros'))),
          spread(of(name, 'redisCommands')).median.toFixed(3),
          spread(of(name, 'redisMicros')).median.toFixed(0),
          spread(of(name, 'p50Ms')).median.toFixed(2),
        ]),
      },
    ],
    goals: [],
    notes: [
      `${ROUNDS} rounds of ${CALLS} calls each, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}. Each round starts with another kind.`,
      'A call with a key sends four commands. One of them is a script, whose own three commands Redis counts as well. A confirmed one adds its part of a WAIT and an INFO, which is not counted.',
      `In "${CONFIRMED}" Redis has one replica, IDEMPOTENCY_REPLICAS is 1, and calls at the same moment share a WAIT. The CPU of Redis is that of the master. Redis, its replica, upstream and the load share their processors, so p50 says how long a call waits here, not elsewhere.`,
    ],
    raw: Object.fromEntries(results),
  }
}

async function started(
  world: World,
  port: number,
  { settings = {}, root }: { settings?: Record<string, string>; root?: string } = {},
): Promise<Omit<Calls, 'name' | 'hasKey'>> {
  const program = await startThisServer(
    { ...settingsOf(world, port), ...LIMITS, ...settings },
    { on: 'measured', ...(root && { root }) },
  )
  const [cookie = ''] = await logInMany(port, 1)
  return { world, program, port, cookie }
}

/** Makes calls, and divides what they cost by their number. @throws Error if one of them fails */
async function measure({ world, program, port, cookie, hasKey }: Calls, calls: number): Promise<Round> {
  const { redis } = world
  const { origin, pathname: path } = new URL(apiUrl(port))
  const headers = Object.fromEntries(BROWSER_HEADERS.map((line) => line.split(': ') as [string, string]))
  const pool = new Pool(origin, { connections: AT_ONCE })
  const times: number[] = []
  let left = calls
  const call = async (): Promise<void> => {
    while (left-- > 0) {
      const startedAt = performance.now()
      const key = hasKey ? { 'idempotency-key': `key ${++keys}` } : {}
      const sent = { method: 'POST', path, headers: { ...headers, cookie, ...key }, body: '{"amount":1}' } as const
      const { statusCode, body } = await pool.request(sent)
      await body.dump()
      if (statusCode !== 200) throw new Error(`a call got ${statusCode}: ${program.logTail()}`)
      times.push(performance.now() - startedAt)
    }
  }
  const before = { cpu: program.cpuMs(), redis: redis.program.cpuMs(), commands: await redis.commands() }
  await Promise.all(Array.from({ length: AT_ONCE }, call))
  await pool.close()
  return {
    cpuMicros: ((program.cpuMs() - before.cpu) * 1000) / calls,
    redisMicros: ((redis.program.cpuMs() - before.redis) * 1000) / calls,
    redisCommands: ((await redis.commands()) - before.commands) / calls,
    p50Ms: spread(times).median,
  }
}
