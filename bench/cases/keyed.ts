import { costOfCalls } from '../calls.ts'
import { thisServer, THIS_SERVER } from '../contenders.ts'
import { BROWSER_HEADERS } from '../load/request-texts.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { startServers, type Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'
import { startRedis, startReplicaOf } from '../world.ts'

const WHOLE = { count: 9, calls: 1500 }
const SHORT = { count: 7, calls: 1000 }
const WARM_UP_CALLS = 3000
const AT_ONCE = 8
const WITHOUT = 'without a key'
const WITH = 'with a key'
const CONFIRMED = 'with a key, confirmed by a replica'
/** As many keys as one session may use, since this load has only a few sessions. */
const LIMITS = { IDEMPOTENCY_MAX_RECORDS: '100000', IDEMPOTENCY_MAX_KEPT_BYTES: '1000000000' }

/** The most CPU time of a call with a key, as a multiple of one without. */
const LIMIT = 2.6
const WHY = 'A call with a key sends three commands to Redis, and its response is sealed before it is kept.'

let keys = 0

/** Measures a POST without an Idempotency-Key, with one, with one that a replica confirms, and the first two in another checkout. */
export async function keyed({ before, short = false }: Choice): Promise<Report> {
  const replicated = await startRedis()
  if (!short) await startReplicaOf(replicated)
  const confirmed = { ...LIMITS, IDEMPOTENCY_REPLICAS: '1', REDIS_URL: replicated.url }
  const { world, contenders } = await startServers([
    thisServer(THIS_SERVER, { settings: LIMITS }),
    ...(short ? [] : [thisServer(CONFIRMED, { settings: confirmed })]),
    ...(before === undefined ? [] : [thisServer('before', { settings: LIMITS, root: before })]),
  ])
  const kinds = contenders.flatMap((server) => {
    if (server.name === CONFIRMED) return { server, redis: replicated, name: CONFIRMED, hasKey: true }
    const { redis } = world
    const prefix = server.name === THIS_SERVER ? '' : `${server.name}, `
    return [
      { server, redis, name: prefix + WITHOUT, hasKey: false },
      { server, redis, name: prefix + WITH, hasKey: true },
    ]
  })
  const measure = ({ server, redis, hasKey }: (typeof kinds)[number], calls: number) => {
    const headers = { ...BROWSER_HEADERS, cookie: server.cookies[0] ?? '' }
    return costOfCalls(redis, server, calls, AT_ONCE, () => ({
      method: 'POST',
      headers: hasKey ? { ...headers, 'idempotency-key': `key ${++keys}` } : headers,
      body: '{"amount":1}',
    }))
  }
  for (const kind of kinds) await measure(kind, WARM_UP_CALLS)
  const { count, calls } = short ? SHORT : WHOLE
  const results = await rounds(kinds, count, (kind) => measure(kind, calls))
  const of = figuresOf(results)
  const toWithout = ratio(of(WITH, 'cpuMicros'), of(WITHOUT, 'cpuMicros'))
  return {
    name: 'keyed',
    title: 'A POST with an Idempotency-Key',
    tables: [
      tableOf('A response of 1.1 KB; each key is new', [...results.keys()], {
        'CPU µs per call': (name) => shown(spread(of(name, 'cpuMicros')), 0),
        [`${WITHOUT} = 1`]: (name) => shown(ratio(of(name, 'cpuMicros'), of(WITHOUT, 'cpuMicros'))),
        'Redis commands': (name) => shownMedian(of(name, 'redisCommands'), 3),
        'Redis CPU µs': (name) => shownMedian(of(name, 'redisMicros'), 0),
        'p50 ms': (name) => shownMedian(of(name, 'p50Ms'), 2),
      }),
    ],
    goals: [atMost(LIMIT, `CPU time of a POST with a key ≤ ${LIMIT} × one without`, toWithout, { why: WHY })],
    notes: [
      `${count} rounds of ${calls} calls each, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}. Each round starts with another kind.`,
      'A call with a key sends three commands. Two of them are scripts, whose own three commands Redis counts as well. A confirmed one adds its part of a WAIT and an INFO, which is not counted.',
      `In "${CONFIRMED}" Redis has one replica, IDEMPOTENCY_REPLICAS is 1, and calls at the same moment share a WAIT. The CPU of Redis is that of the master. Redis, its replica, upstream and the load share their processors, so p50 says how long a call waits here, not elsewhere.`,
    ],
    raw: results,
  }
}
