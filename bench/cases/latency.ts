import { BARE, THIS_SERVER } from '../contenders.ts'
import { pace, startSpeedProbe, type Paced, type SpeedProbe } from '../paced.ts'
import { atMost, shown, tableOf, type Goal, type Report } from '../report.ts'
import { measure, startSelected, type Choice, type Running } from '../rest-load.ts'
import { figuresOf, quantile, ratio, rounds, spread } from '../rounds.ts'
import type { World } from '../world.ts'

const ROUNDS = 9
const SECONDS = 2
/** Long enough for V8 to compile hot code, which blocks the one processor for tens of ms and would distort latencies. */
const WARM_UP_SECONDS = 4
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 64
/** The most that the p99 and the p99.9 of all requests may be, as a multiple of the bare proxy's. */
const LIMIT = 1.5
/** The most that the p99 of the worst round may be, as a multiple of that of the bare proxy. */
const WORST_LIMIT = 2
/** If the bare proxy has a round with a higher p99, the machine was busy, and the worst round says nothing. */
const CALM_MS = 15
const WHY =
  'V8 marks the heap on the only processor for some tens of ms. That is rare under steady load. The bare proxy has hardly any heap.'

type Results = ReadonlyMap<string, readonly Paced[]>

/** Measures response times while a server keeps a processor half busy. */
export async function latency(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startSelected(choice)
  const halfLoads = new Map<string, number>()
  for (const contender of contenders) halfLoads.set(contender.name, await halfLoad(world, contender))
  const own = halfLoads.get(THIS_SERVER) ?? 0
  // Slower contenders get their own half load, all others that of this server.
  const rate = (name: string): number => Math.round(Math.min(own, halfLoads.get(name) ?? 0))
  const probe = startSpeedProbe()
  const results = await rounds(contenders, ROUNDS, (contender) => pacedRound(contender, rate(contender.name), probe))
  const of = figuresOf(results)
  const names = [...results.keys()]
  const counted = (name: string): number[] =>
    of(name, 'times').map((times, round) => times.length / (of(name, 'responses')[round] ?? 0))
  const pooled = pooledOf(results)
  const pooledToBare = (name: string, share: number): string => (pooled(name, share) / pooled(BARE, share)).toFixed(2)
  return {
    name: 'latency',
    title: 'Latency at half load',
    tables: [
      tableOf(`Latency, ${BARE} = 1`, names, {
        'p99, median (min–max) of the rounds': (name) => shown(ratio(of(name, 'p99'), of(BARE, 'p99'))),
        'p99 of all requests': (name) => pooledToBare(name, 0.99),
        'p99.9 of all requests': (name) => pooledToBare(name, 0.999),
        'requests/s': (name) => rate(name).toFixed(0),
        counted: (name) => `${(100 * spread(counted(name)).median).toFixed(0)} %`,
        'CPU utilization': (name) =>
          `${((rate(name) * spread(of(name, 'cpuMicrosPerRequest')).median) / 1e4).toFixed(0)} %`,
      }),
      tableOf('Latency, ms', names, {
        p50: (name) => shown(spread(of(name, 'p50'))),
        p99: (name) => shown(spread(of(name, 'p99'))),
        'p99 of all requests': (name) => pooled(name, 0.99).toFixed(1),
        'p99.9 of all requests': (name) => pooled(name, 0.999).toFixed(1),
        max: (name) => Math.max(...of(name, 'max')).toFixed(1),
        'delay of the sender, p99': (name) => Math.max(...of(name, 'ownP99')).toFixed(2),
      }),
    ],
    goals: results.has(BARE) ? goalsOf(results) : [],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s after a warm-up. The rate is constant, whatever the server does. It is the rate at which this server, or a slower contender, keeps one processor half busy.`,
      'A latency starts when the request is sent, or when it is due if all connections are busy. Requests are due on a grid of 1 ms.',
      'Only requests count that were not under way while the machine itself was slow, or in the 40 ms after that. A process measures this by a fixed computation: the processors of a virtual machine may be slow for 40 to 140 ms, and only that shows it.',
      `The worst round of this server has a goal if the bare proxy had no round with a p99 above ${CALM_MS} ms.`,
      ...missing,
    ],
    raw: results,
  }
}

/** @returns a function that returns a quantile of all requests to a contender, whatever their round, in ms */
function pooledOf(results: Results): (name: string, share: number) => number {
  const of = figuresOf(results)
  return (name, share) => quantile(of(name, 'times').flat(), share)
}

function goalsOf(results: Results): Goal[] {
  const of = figuresOf(results)
  const text = { why: WHY }
  const pooled = pooledOf(results)
  const toBare = (share: number): number => pooled(THIS_SERVER, share) / pooled(BARE, share)
  const worst = spread(of(BARE, 'p99')).max
  const toWorst = spread(of(THIS_SERVER, 'p99')).max / worst
  return [
    atMost(LIMIT, `p99 at half load, all requests: ≤ ${LIMIT} × ${BARE}`, toBare(0.99), text),
    atMost(LIMIT, `p99.9 at half load, all requests: ≤ ${LIMIT} × ${BARE}`, toBare(0.999), text),
    ...(worst > CALM_MS
      ? []
      : [atMost(WORST_LIMIT, `p99 at half load, worst round: ≤ ${WORST_LIMIT} × that of ${BARE}`, toWorst, text)]),
  ]
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

function pacedRound(contender: Running, perSecond: number, probe?: SpeedProbe): Promise<Paced> {
  return pace(contender, { perSecond, seconds: SECONDS, connections: CONNECTIONS }, probe)
}
