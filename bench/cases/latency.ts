import { THIS_SERVER } from '../contenders.ts'
import { pace } from '../paced.ts'
import type { Latencies } from '../load/pacer.ts'
import { shown, type Report } from '../report.ts'
import { measure, startAll, type Choice, type Running } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const SECONDS = 3
const CAPACITY_SECONDS = 2
const CONNECTIONS = 64
const BARE = 'bare node proxy'
const LIMIT = 1.5

/** How long a user waits when a server is half busy. */
export async function latency(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startAll(choice)
  const capacity = new Map<string, number>()
  for (const contender of contenders) {
    await measure(world, contender, 1)
    // By processor time: that is what half load is half of, whatever else the machine does at the moment.
    const { cpuMicrosPerRequest } = await measure(world, contender, CAPACITY_SECONDS)
    capacity.set(contender.name, 1e6 / cpuMicrosPerRequest)
  }
  const own = capacity.get(THIS_SERVER) ?? 0
  // The same for all who can bear it; half of their own limit for the slower ones.
  const rate = ({ name }: Running): number => Math.round(Math.min(own, capacity.get(name) ?? 0) / 2)
  const results = await rounds(contenders, ROUNDS, (contender) =>
    pace(contender, { perSecond: rate(contender), seconds: SECONDS, connections: CONNECTIONS }),
  )
  const of = (name: string, figure: keyof Latencies): number[] =>
    results.get(name)?.map((round) => round[figure]) ?? []
  const toBare = ratio(of(THIS_SERVER, 'p99'), of(BARE, 'p99'))
  return {
    name: 'latency',
    title: 'Latency at half load',
    tables: [
      {
        title: `p99, ${BARE} = 1`,
        columns: ['', 'median (min–max) of the rounds', 'requests/s sent'],
        rows: contenders.map((contender) => [
          contender.name,
          shown(ratio(of(contender.name, 'p99'), of(BARE, 'p99'))),
          rate(contender).toFixed(0),
        ]),
      },
      {
        title: 'Latency, ms',
        columns: ['', 'p50', 'p99', 'max', 'sender late, p99'],
        rows: contenders.map(({ name }) => [
          name,
          shown(spread(of(name, 'p50'))),
          shown(spread(of(name, 'p99'))),
          spread(of(name, 'max')).max.toFixed(1),
          spread(of(name, 'ownP99')).max.toFixed(2),
        ]),
      },
    ],
    goals: results.has(BARE)
      ? [
          {
            goal: `p99 at half load ≤ ${LIMIT} × ${BARE}`,
            measured: `${shown(toBare)} ×`,
            isMet: toBare.median <= LIMIT,
          },
        ]
      : [],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s at a constant rate, which goes on whatever the server does: it keeps one processor half busy with this server, or with a slower one.`,
      'A request counts from when it is sent or, with all connections busy, from when it should have been. It is due on a grid of 1 ms.',
      ...missing,
    ],
    raw: Object.fromEntries(results),
  }
}
