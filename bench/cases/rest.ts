import { BARE, THIS_SERVER } from '../contenders.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { CONNECTIONS, measure, measureTogether, startSelected, type Choice, type Running } from '../rest-load.ts'
import { figuresOf, pairs, ratioToBase, rounds, spread } from '../rounds.ts'

const ROUNDS = 5
const SECONDS = 1
/** Rounds of this server together with another one. */
const PAIRS = 8
/** Those with the bare proxy, which has a goal, and with another checkout. */
const MORE_PAIRS = 24
const SHORT_PAIRS = 12
const PAIR_SECONDS = 2
/** Long enough for V8 to compile hot code. */
const WARM_UP_SECONDS = 4
/** Redis commands per request that count as none: each session is touched once a minute, whatever its load. */
const NO_COMMANDS = 0.01
/** The most CPU time of this server, as a multiple of that of the bare proxy. */
const LIMIT = 1.25
const WHY =
  'The cost of this server is thin and spread out: beside the bare proxy it pays 7 µs for Fastify and its router, 5 for more headers upstream, 7 for checks, its own headers and the log line, 9 for the call and its forwarding, 4 for the session, and 1 for metrics; no function takes more than 1.6.'

/** Measures an authenticated GET of 1.1 KB under full load. */
export async function rest(choice: Choice): Promise<Report> {
  const { world, contenders, missing } = await startSelected(choice)
  for (const contender of contenders) await measure(world, contender, WARM_UP_SECONDS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, SECONDS))
  const of = figuresOf(results)
  const names = [...results.keys()]
  const commands = spread(of(THIS_SERVER, 'redisCommandsPerRequest'))
  const [own, ...others] = contenders as [Running, ...Running[]]
  const compare = (some: readonly Running[], count: number) =>
    pairs(own, some, count, (two) => measureTogether(world, two, PAIR_SECONDS))
  const paired = new Map([
    ...(await compare(others.filter(isExact), choice.short === true ? SHORT_PAIRS : MORE_PAIRS)),
    ...(await compare(
      others.filter((other) => !isExact(other)),
      PAIRS,
    )),
  ])
  const bare = paired.get(BARE)
  return {
    name: 'rest',
    title: 'An authenticated GET of 1.1 KB, proxied',
    tables: [
      tableOf('CPU time per request, this server = 1', names, {
        'median (min–max) of the rounds': (name) =>
          name === THIS_SERVER ? '1' : shown(ratioToBase(paired.get(name), 'cpuMicrosPerRequest')),
      }),
      tableOf('Figures (requests/s of one processor; latencies under full load)', names, {
        'CPU µs per request': (name) => shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
        'Redis CPU µs': (name) => shownMedian(of(name, 'redisMicrosPerRequest'), 1),
        'Redis commands': (name) => shownMedian(of(name, 'redisCommandsPerRequest'), 3),
        'requests/s': (name) => shownMedian(of(name, 'requestsPerSecond'), 0),
        'p50 ms': (name) => shownMedian(of(name, 'p50Ms'), 2),
        'p99 ms': (name) => shownMedian(of(name, 'p99Ms'), 2),
        'RSS MiB': (name) => shownMedian(of(name, 'rssMib'), 0),
      }),
    ],
    goals: [
      atMost(NO_COMMANDS, 'no Redis command per request in the steady state', commands, { unit: '', digits: 4 }),
      ...(bare === undefined
        ? []
        : [
            atMost(
              LIMIT,
              `CPU time per request ≤ ${LIMIT} × ${BARE}`,
              ratioToBase({ base: bare.other, other: bare.base }, 'cpuMicrosPerRequest'),
              { why: WHY },
            ),
          ]),
    ],
    notes: [
      `Ratios: this server and another one share the first processor for ${PAIR_SECONDS} s, ${PAIRS} times; with the ${BARE} ${MORE_PAIRS} times.`,
      `Figures: ${ROUNDS} rounds of ${SECONDS} s, in which each contender has the first processor to itself; load generator, upstream and Redis share the other. So requests/s are those of one processor, except where upstream and wrk are the bottleneck (nginx).`,
      `wrk has ${CONNECTIONS} connections to each contender, after a warm-up of ${WARM_UP_SECONDS} s.`,
      ...missing,
    ],
    raw: { alone: results, together: paired },
  }
}

/** Whether small differences matter. */
function isExact({ name }: Running): boolean {
  return name === BARE || name === 'before'
}
