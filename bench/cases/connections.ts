import { BARE } from '../contenders.ts'
import { pace } from '../paced.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { measure, startSelected } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const SECONDS = 3
const PER_SECOND = 2000
const COUNTS = [10, 100, 2000] as const
/** The growth that still counts as flat, as rounds of the same load differ by almost as much. */
const MAX_GROWTH = 1.25

/** Measures the cost of a request by the number of connections. */
export async function connections(): Promise<Report> {
  const { world, contenders, missing } = await startSelected({ with: [BARE] })
  const cells = contenders
    .filter(({ name }) => !name.includes('no log'))
    .flatMap((contender) =>
      COUNTS.map((count) => ({ name: `${contender.name}, ${count.toLocaleString('en')}`, contender, count })),
    )
  for (const { contender } of cells) await measure(world, contender, 1)
  const results = await rounds(cells, ROUNDS, ({ contender, count }) =>
    pace(contender, { perSecond: PER_SECOND, seconds: SECONDS, connections: count }),
  )
  const of = figuresOf(results)
  const names = [...results.keys()]
  const cpu = (index: number): number[] => of(names[index] ?? '', 'cpuMicrosPerRequest')
  const goal = `CPU time per request flat from ${COUNTS[0]} to 2,000 connections (≤ ${MAX_GROWTH} ×)`
  return {
    name: 'connections',
    title: 'The cost of a request by the number of connections',
    tables: [
      tableOf(
        `Constant rate of ${PER_SECOND} requests/s, distributed over all connections`,
        names,
        {
          'CPU µs per request': (name) => shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
          'p50 ms': (name) => shownMedian(of(name, 'p50'), 2),
          'p99 ms': (name) => shownMedian(of(name, 'p99'), 2),
        },
        'server, connections',
      ),
    ],
    goals: [atMost(MAX_GROWTH, goal, ratio(cpu(COUNTS.length - 1), cpu(0)))],
    notes: [`${ROUNDS} rounds of ${SECONDS} s each. Opening the connections is not counted.`, ...missing],
    raw: results,
  }
}
