import { BARE, THIS_SERVER } from '../contenders.ts'
import { CALM_MS, latencyGoals, pooledOf } from '../latency-goals.ts'
import { halfLoad, pace } from '../paced.ts'
import { shown, tableOf, type Report } from '../report.ts'
import { startSelected, type Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 9
const SECONDS = 2
const WHY =
  'A request costs more CPU time here, so that what has queued up while the machine was slow takes longer to serve. V8 stops for 9 ms at most: in the rounds that were traced it had no major collection.'

/** Measures response times while a server keeps a processor half busy. */
export async function latency(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startSelected(choice)
  const halfLoads = new Map<string, number>()
  for (const contender of contenders) halfLoads.set(contender.name, await halfLoad(world, contender))
  const own = halfLoads.get(THIS_SERVER) ?? 0
  // Slower contenders get their own half load, all others that of this server.
  const rate = (name: string): number => Math.round(Math.min(own, halfLoads.get(name) ?? 0))
  const results = await rounds(contenders, ROUNDS, (contender) =>
    pace(contender, { perSecond: rate(contender.name), seconds: SECONDS }),
  )
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
    goals: results.has(BARE) ? latencyGoals(results, THIS_SERVER, BARE, 'at half load', WHY) : [],
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
