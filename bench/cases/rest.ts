import { THIS_SERVER } from '../contenders.ts'
import type { Goal, Report, Table } from '../report.ts'
import { shown } from '../report.ts'
import { CONNECTIONS, measure, startAll, type Choice, type RestRound } from '../rest-load.ts'
import { ratio, rounds, spread, type Spread } from '../rounds.ts'

const ROUNDS = 12
const SECONDS = 1
/** Long enough for V8 to compile hot code. */
const WARM_UP_SECONDS = 4
/** Redis commands per request that count as none: each session is touched once a minute, whatever its load. */
const NO_COMMANDS = 0.01
/** Maximum CPU time of this server, as a multiple of these contenders' CPU time. */
const MAX_MULTIPLE: Readonly<Record<string, number>> = { 'bare node proxy': 1.25 }
/** Minimum CPU time of these contenders, as a multiple of this server's CPU time. */
const MIN_ADVANTAGE: Readonly<Record<string, number>> = {
  'Apache + mod_auth_openidc': 3,
  'Express stack': 3,
}

/** Measures an authenticated GET of 1.1 KB under full load. */
export async function rest(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startAll(choice)
  for (const contender of contenders) await measure(world, contender, WARM_UP_SECONDS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, SECONDS))
  const of = (name: string, figure: keyof RestRound): number[] => results.get(name)?.map((round) => round[figure]) ?? []
  const cpu = (name: string): number[] => of(name, 'cpuMicrosPerRequest')
  const names = contenders.map(({ name }) => name)
  const ratios = new Map(names.map((name) => [name, ratio(cpu(name), cpu(THIS_SERVER))]))
  return {
    name: 'rest',
    title: 'An authenticated GET of 1.1 KB, proxied',
    tables: [ratioTable(ratios), figureTable(names, (name, figure) => spread(of(name, figure)))],
    goals: goals(ratios, of(THIS_SERVER, 'redisCommandsPerRequest')),
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s each after a warm-up of ${WARM_UP_SECONDS} s; wrk with ${CONNECTIONS} connections. Each round starts with another contender.`,
      'Each contender has the first processor to itself; load generator, upstream and Redis share the other. So requests/s are those of one processor, except where upstream and wrk are the bottleneck (nginx).',
      ...missing,
    ],
    raw: Object.fromEntries(results),
  }
}

function ratioTable(ratios: ReadonlyMap<string, Spread>): Table {
  return {
    title: 'CPU time per request, this server = 1',
    columns: ['', 'median (min–max) of the rounds'],
    rows: [...ratios].map(([name, value]) => [name, name === THIS_SERVER ? '1' : shown(value)]),
  }
}

function figureTable(names: readonly string[], of: (name: string, figure: keyof RestRound) => Spread): Table {
  const columns: [string, keyof RestRound, number][] = [
    ['CPU µs per request', 'cpuMicrosPerRequest', 1],
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
        figure === 'cpuMicrosPerRequest' ? shown(of(name, figure), digits) : of(name, figure).median.toFixed(digits),
      ),
    ]),
  }
}

function goals(ratios: ReadonlyMap<string, Spread>, commands: readonly number[]): Goal[] {
  const steady = spread(commands).median
  const list: Goal[] = [
    {
      goal: 'no Redis command per request in the steady state',
      measured: steady.toFixed(4),
      isMet: steady < NO_COMMANDS,
    },
  ]
  for (const [name, value] of ratios) {
    const maxMultiple = MAX_MULTIPLE[name]
    if (maxMultiple !== undefined) {
      const multiple = inverse(value)
      list.push({
        goal: `CPU time per request ≤ ${maxMultiple} × ${name}`,
        measured: `${shown(multiple)} ×`,
        isMet: multiple.median <= maxMultiple,
      })
    }
    const minAdvantage = MIN_ADVANTAGE[name]
    if (minAdvantage !== undefined) {
      list.push({
        goal: `CPU time per request of ${name} ≥ ${minAdvantage} × this server`,
        measured: `${shown(value)} ×`,
        isMet: value.median >= minAdvantage,
      })
    }
  }
  return list
}

function inverse({ median, min, max }: Spread): Spread {
  return { median: 1 / median, min: 1 / max, max: 1 / min }
}
