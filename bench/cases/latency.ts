import { BARE, THIS_SERVER } from '../contenders.ts'
import { pace, type Paced } from '../paced.ts'
import { atMost, shown, tableOf, type Report } from '../report.ts'
import { measure, startSelected, type Choice, type Running } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'
import type { World } from '../world.ts'

const ROUNDS = 9
const SECONDS = 2
/** Long enough for V8 to compile hot code, which blocks the one processor for tens of ms and would distort latencies. */
const WARM_UP_SECONDS = 4
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 64
const LIMIT = 1.5

/** Measures response times while a server keeps a processor half busy. */
export async function latency(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startSelected(choice)
  const halfLoads = new Map<string, number>()
  for (const contender of contenders) halfLoads.set(contender.name, await halfLoad(world, contender))
  const own = halfLoads.get(THIS_SERVER) ?? 0
  // Slower contenders get their own half load, all others that of this server.
  const rate = (name: string): number => Math.round(Math.min(own, halfLoads.get(name) ?? 0))
  const results = await rounds(contenders, ROUNDS, (contender) => pacedRound(contender, rate(contender.name)))
  const of = figuresOf(results)
  const names = [...results.keys()]
  const toBare = ratio(of(THIS_SERVER, 'p99'), of(BARE, 'p99'))
  return {
    name: 'latency',
    title: 'Latency at half load',
    tables: [
      tableOf(`p99, ${BARE} = 1`, names, {
        'median (min–max) of the rounds': (name) => shown(ratio(of(name, 'p99'), of(BARE, 'p99'))),
        'requests/s': (name) => rate(name).toFixed(0),
        'CPU utilization': (name) =>
          `${((rate(name) * spread(of(name, 'cpuMicrosPerRequest')).median) / 1e4).toFixed(0)} %`,
      }),
      tableOf('Latency, ms', names, {
        p50: (name) => shown(spread(of(name, 'p50'))),
        p99: (name) => shown(spread(of(name, 'p99'))),
        max: (name) => Math.max(...of(name, 'max')).toFixed(1),
        'delay of the sender, p99': (name) => Math.max(...of(name, 'ownP99')).toFixed(2),
      }),
    ],
    goals: results.has(BARE) ? [atMost(LIMIT, `p99 at half load ≤ ${LIMIT} × ${BARE}`, toBare)] : [],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s after a warm-up. The rate is constant, whatever the server does. It is the rate at which this server, or a slower contender, keeps one processor half busy.`,
      'A latency starts when the request is sent, or when it is due if all connections are busy. Requests are due on a grid of 1 ms.',
      ...missing,
    ],
    raw: results,
  }
}

/** Requests per second that keep a processor half busy. Each costs more CPU time than a request under full load. */
async function halfLoad(world: World, contender: Running): Promise<number> {
  const { cpuMicrosPerRequest } = await measure(world, contender, WARM_UP_SECONDS)
  let perSecond = 5e5 / cpuMicrosPerRequest
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    perSecond = 5e5 / (await pacedRound(contender, perSecond)).cpuMicrosPerRequest
  }
  return perSecond
}

function pacedRound(contender: Running, perSecond: number): Promise<Paced> {
  return pace(contender, { perSecond, seconds: SECONDS, connections: CONNECTIONS })
}
