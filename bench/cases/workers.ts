import { thisServer, THIS_SERVER } from '../contenders.ts'
import { shown, shownMedian, tableOf, type Report } from '../report.ts'
import { measure, startServers } from '../rest-load.ts'
import { figuresOf, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const SECONDS = 3
const CONNECTIONS = 64

/** Measures one and two workers on all processors. */
export async function workers(): Promise<Report> {
  const { world, contenders } = await startServers(
    // The workers are not bound to processors, as they share all of them with the load.
    ['1', '2'].map((count) => thisServer(`WORKERS=${count}`, { settings: { WORKERS: count }, on: 'any' })),
  )
  for (const contender of contenders) await measure(world, contender, 1, CONNECTIONS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, SECONDS, CONNECTIONS))
  const of = figuresOf(results)
  return {
    name: 'workers',
    title: 'More than one process',
    tables: [
      tableOf(`${THIS_SERVER} on all processors, shared with the load`, [...results.keys()], {
        'requests/s': (name) => shown(spread(of(name, 'requestsPerSecond')), 0),
        'CPU µs per request': (name) => shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
        'p99 ms': (name) => shownMedian(of(name, 'p99Ms'), 1),
        'RSS MiB': (name) => shownMedian(of(name, 'rssMib'), 0),
      }),
    ],
    notes: [
      'If load, upstream and server share two processors, little is left for a second worker. CPU time is the figure to trust.',
    ],
    raw: results,
  }
}
