import { BARE_WITH_SOCKETS, executeBeside, LOAD_NOTE, startBusyStage } from '../busy-stage.ts'
import { THIS_SERVER } from '../contenders.ts'
import { latencyGoals, pooledOf } from '../latency-goals.ts'
import { halfLoad, pace, type Paced } from '../paced.ts'
import { endAll, type Processors } from '../program.ts'
import { shown, tableOf, type Report } from '../report.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 15
/** Until V8 has compiled what is hot here: not only requests, but frames, prices, logins, renewals and scrapes. */
const WARM_UP_ROUNDS = 6
const SECONDS = 2
/** The sender starts while everything else already goes on. */
const START_SECONDS = 1
const WHILE = 'while everything else goes on'
const WHY =
  'The slowest rounds decide the figures of all requests. The probe runs on the other processor, so it does not catch every slow spell of this one: the same work then takes 1.5 times its CPU time, and what queues up here takes longer to serve.'
const PLACES: readonly (readonly [name: string, on: Processors])[] = [
  ['one processor', 'measured'],
  ['two processors', 'any'],
]

/** Measures response times at half load while sockets, logins, renewals and scrapes go on. */
export async function busy(): Promise<Report> {
  const results = new Map<string, Paced[]>()
  const warmUps = new Map<string, Paced[]>()
  const rates: string[] = []
  for (const [place, on] of PLACES) {
    const { world, contenders } = await startBusyStage(on)
    const [own, ...others] = contenders
    const perSecond = Math.round(await halfLoad(world, own))
    rates.push(`${perSecond.toLocaleString('en')} on ${place}`)
    // It only warms up: all get the same rate.
    for (const other of others) await halfLoad(world, other)
    const load = { perSecond, seconds: SECONDS }
    const all = await rounds(contenders, WARM_UP_ROUNDS + ROUNDS, (contender) =>
      executeBeside(contender, SECONDS + START_SECONDS, () => pace(contender, load)),
    )
    for (const [name, each] of all) {
      warmUps.set(nameOf(name, place), each.slice(0, WARM_UP_ROUNDS))
      results.set(nameOf(name, place), each.slice(WARM_UP_ROUNDS))
    }
    await endAll()
  }
  const of = figuresOf(results)
  const pooled = pooledOf(results)
  const pooledWarmUp = pooledOf(warmUps)
  return {
    name: 'busy',
    title: 'Latency at half load while everything else goes on',
    tables: [
      tableOf('Latency, ms', [...results.keys()], {
        p50: (name) => shown(spread(of(name, 'p50'))),
        p99: (name) => shown(spread(of(name, 'p99'))),
        [`the same, ${BARE_WITH_SOCKETS} = 1`]: (name) => shown(ratio(of(name, 'p99'), of(bareOf(name), 'p99'))),
        'p99 of all requests': (name) => pooled(name, 0.99).toFixed(1),
        'p99.9 of all requests': (name) => pooled(name, 0.999).toFixed(1),
        max: (name) => Math.max(...of(name, 'max')).toFixed(1),
        'p99 of all requests, warm-up': (name) => pooledWarmUp(name, 0.99).toFixed(1),
      }),
    ],
    goals: PLACES.flatMap(([place]) =>
      latencyGoals(results, nameOf(THIS_SERVER, place), nameOf(BARE_WITH_SOCKETS, place), WHILE, WHY),
    ),
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s, after a warm-up of ${WARM_UP_ROUNDS} more, in which V8 compiles what is hot. The last column is of the warm-up alone. Requests per second: ${rates.join(', ')}, which keep this server half busy by themselves. ${LOAD_NOTE} The bare proxy without sockets has nothing else to do.`,
      'On two processors, the load, upstream and Redis run on the second one, too.',
      'Requests are sent and counted as in "Latency at half load".',
    ],
    raw: results,
  }
}

function nameOf(contender: string, place: string): string {
  return `${contender}, ${place}`
}

/** The name of the bare server with sockets in the same place. */
function bareOf(name: string): string {
  const [, place = ''] = name.split(', ')
  return nameOf(BARE_WITH_SOCKETS, place)
}
