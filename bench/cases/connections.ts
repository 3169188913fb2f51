import { pace, type Paced } from '../paced.ts'
import { shown, type Report } from '../report.ts'
import { measure, startAll } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const SECONDS = 3
const PER_SECOND = 2000
const COUNTS = [10, 100, 2000] as const
/** The growth that still counts as flat, as rounds of the same load differ by almost as much. */
const MAX_GROWTH = 1.25

/** Measures the cost of a request by the number of connections. */
export async function connections(): Promise<Report> {
  const { world, contenders, missing } = await startAll({ with: ['bare node proxy'] })
  const [own] = contenders
  if (own === undefined) throw new Error(missing.join())
  const cells = contenders
    .filter(({ name }) => !name.includes('no log'))
    .flatMap((contender) =>
      COUNTS.map((count) => ({ name: `${contender.name}, ${count.toLocaleString('en')}`, contender, count })),
    )
  for (const { contender } of cells) await measure(world, contender, 1)
  const results = await rounds(cells, ROUNDS, ({ contender, count }) =>
    pace(contender, { perSecond: PER_SECOND, seconds: SECONDS, connections: count }),
  )
  const of = (name: string, figure: keyof Paced): number[] => results.get(name)?.map((round) => round[figure]) ?? []
  const cpu = (index: number): number[] => of(cells[index]?.name ?? '', 'cpuMicrosPerRequest')
  const growth = ratio(cpu(COUNTS.length - 1), cpu(0))
  return {
    name: 'connections',
    title: 'The cost of a request by the number of connections',
    tables: [
      {
        title: `Constant rate of ${PER_SECOND} requests/s, distributed over all connections`,
        columns: ['server, connections', 'CPU µs per request', 'p50 ms', 'p99 ms'],
        rows: cells.map(({ name }) => [
          name,
          shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
          spread(of(name, 'p50')).median.toFixed(2),
          spread(of(name, 'p99')).median.toFixed(2),
        ]),
      },
    ],
    goals: [
      {
        goal: `CPU time per request flat from ${COUNTS[0]} to 2,000 connections (≤ ${MAX_GROWTH} ×)`,
        measured: `${shown(growth)} ×`,
        isMet: growth.median <= MAX_GROWTH,
      },
    ],
    notes: [`${ROUNDS} rounds of ${SECONDS} s each. Opening the connections is not counted.`, ...missing],
    raw: Object.fromEntries(results),
  }
}
