import { THIS_SERVER } from '../contenders.ts'
import { pace, type Paced } from '../paced.ts'
import { shown, type Report } from '../report.ts'
import { measure, startAll, type Choice, type Running } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'
import type { World } from '../world.ts'

const ROUNDS = 9
const SECONDS = 2
/** Until everybody runs compiled code: compiling takes tens of ms of the one processor, and that is no latency to compare. */
const WARM_UP_SECONDS = 4
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 64
const BARE = 'bare node proxy'
const LIMIT = 1.5

/** How long a user waits when a server is half busy. */
export async function latency(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startAll(choice)
  const halves = new Map<string, number>()
  for (const contender of contenders) halves.set(contender.name, await halfLoad(world, contender))
  const own = halves.get(THIS_SERVER) ?? 0
  // The same for all who can bear it; half of their own limit for the slower ones.
  const rate = ({ name }: Running): number => Math.round(Math.min(own, halves.get(name) ?? 0))
  const results = await rounds(contenders, ROUNDS, (contender) => pacedRound(contender, rate(contender)))
  const of = (name: string, figure: keyof Paced): number[] =>
    results.get(name)?.map((round) => round[figure]) ?? []
  const toBare = ratio(of(THIS_SERVER, 'p99'), of(BARE, 'p99'))
  return {
    name: 'latency',
    title: 'Latency at half load',
    tables: [
      {
        title: `p99, ${BARE} = 1`,
        columns: ['', 'median (min–max) of the rounds', 'requests/s sent', 'processor busy'],
        rows: contenders.map((contender) => [
          contender.name,
          shown(ratio(of(contender.name, 'p99'), of(BARE, 'p99'))),
          rate(contender).toFixed(0),
          `${((rate(contender) * spread(of(contender.name, 'cpuMicrosPerRequest')).median) / 1e4).toFixed(0)} %`,
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
      `${ROUNDS} rounds of ${SECONDS} s at a constant rate, which goes on whatever the server does: it keeps one processor half busy with this server, or with a slower one. Before that everybody was warmed up, with the same load too.`,
      'A request counts from when it is sent or, with all connections busy, from when it should have been. It is due on a grid of 1 ms.',
      ...missing,
    ],
    raw: Object.fromEntries(results),
  }
}

/** Requests a second, sent at a constant rate, that keep a processor half busy: each costs more than under full load. */
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
