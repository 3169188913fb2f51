import { THIS_SERVER } from '../contenders.ts'
import type { Goal, Report, Table } from '../report.ts'
import { shown } from '../report.ts'
import { CONNECTIONS, measure, startAll, type Choice, type RestRound } from '../rest-load.ts'
import { ratio, rounds, spread, type Spread } from '../rounds.ts'

const ROUNDS = 12
const SECONDS = 1
/** Until everybody runs compiled code. */
const WARM_UP_SECONDS = 4
/** Commands a request that are none: the idle limit of a session moves once a minute, however many requests it has. */
const STEADY = 0.01
/** How many times the processor time of these may be spent on a request. */
const DEAREST: Readonly<Record<string, number>> = { 'bare node proxy': 1.25 }
/** How many times the processor time of this server these should take. */
const CHEAPER: Readonly<Record<string, number>> = { 'Apache + mod_auth_openidc': 3, 'Express stack': 3 }

/** An authenticated GET of 1.1 KB, at full load. */
export async function rest(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startAll(choice)
  for (const contender of contenders) await measure(world, contender, WARM_UP_SECONDS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, SECONDS))
  const of = (name: string, figure: keyof RestRound): number[] =>
    results.get(name)?.map((round) => round[figure]) ?? []
  const cpu = (name: string): number[] => of(name, 'cpuMicrosPerRequest')
  const names = contenders.map(({ name }) => name)
  const ratios = new Map(names.map((name) => [name, ratio(cpu(name), cpu(THIS_SERVER))]))
  return {
    name: 'rest',
    title: 'An authenticated GET of 1.1 KB, proxied',
    tables: [ratioTable(ratios), figureTable(names, (name, figure) => spread(of(name, figure)))],
    goals: goals(ratios, of(THIS_SERVER, 'redisCommandsPerRequest')),
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s each after ${WARM_UP_SECONDS} s of warming up, wrk with ${CONNECTIONS} connections; the order moves on from round to round.`,
      'Each contender has the first processor for itself; load generator, upstream and Redis share the other: requests/s are those of one processor, except where upstream and wrk are the slower part (nginx).',
      ...missing,
    ],
    raw: Object.fromEntries(results),
  }
}

function ratioTable(ratios: ReadonlyMap<string, Spread>): Table {
  return {
    title: 'Processor time a request, this server = 1',
    columns: ['', 'median (min–max) of the rounds'],
    rows: [...ratios].map(([name, value]) => [name, name === THIS_SERVER ? '1' : shown(value)]),
  }
}

function figureTable(names: readonly string[], of: (name: string, figure: keyof RestRound) => Spread): Table {
  const columns: [string, keyof RestRound, number][] = [
    ['CPU µs a request', 'cpuMicrosPerRequest', 1],
    ['Redis CPU µs', 'redisMicrosPerRequest', 1],
    ['Redis commands', 'redisCommandsPerRequest', 3],
    ['requests/s', 'requestsPerSecond', 0],
    ['p50 ms', 'p50Ms', 2],
    ['p99 ms', 'p99Ms', 2],
    ['RSS MiB', 'rssMib', 0],
  ]
  return {
    title: 'Figures (requests/s of one processor; latencies under full load)',
    columns: ['', ...columns.map(([title]) => title)],
    rows: names.map((name) => [
      name,
      ...columns.map(([, figure, digits]) =>
        figure === 'cpuMicrosPerRequest'
          ? shown(of(name, figure), digits)
          : of(name, figure).median.toFixed(digits),
      ),
    ]),
  }
}

function goals(ratios: ReadonlyMap<string, Spread>, commands: readonly number[]): Goal[] {
  const steady = spread(commands).median
  const found: Goal[] = [
    {
      goal: 'no Redis command a request in the steady state',
      measured: steady.toFixed(4),
      isMet: steady < STEADY,
    },
  ]
  for (const [name, value] of ratios) {
    const dearest = DEAREST[name]
    if (dearest !== undefined) {
      const ownShare = inverse(value)
      found.push({
        goal: `processor time a request ≤ ${dearest} × ${name}`,
        measured: `${shown(ownShare)} ×`,
        isMet: ownShare.median <= dearest,
      })
    }
    const cheaper = CHEAPER[name]
    if (cheaper !== undefined) {
      found.push({
        goal: `${cheaper} times cheaper than ${name}`,
        measured: `${shown(value)} times`,
        isMet: value.median >= cheaper,
      })
    }
  }
  return found
}

function inverse({ median, min, max }: Spread): Spread {
  return { median: 1 / median, min: 1 / max, max: 1 / min }
}
