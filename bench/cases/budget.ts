import { costOfCalls } from '../calls.ts'
import { thisServer } from '../contenders.ts'
import { BROWSER_HEADERS } from '../load/request-texts.ts'
import { shown, shownMedian, tableOf, type Report } from '../report.ts'
import { startServers, type Running } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 11
const CALLS = 2500
const WARM_UP_CALLS = 5000
const AT_ONCE = 8
const OFF = 'without a budget'
const ON = 'with a budget'
/** More than the load has calls. A new ledger is quiet for five seconds where the shortest window is half a minute. */
export const BUDGET = { UPSTREAM_BUDGET: '100000/30,1000000/600' }

/** Measures a GET with and without UPSTREAM_BUDGET. */
export async function budget(): Promise<Report> {
  const { world, contenders } = await startServers([thisServer(OFF), thisServer(ON, { settings: BUDGET })])
  const measure = (server: Running, calls: number) => {
    // All sessions in turn: one that uses more than an equal part is held back beside others.
    const headers = server.cookies.map((cookie) => ({ ...BROWSER_HEADERS, cookie }))
    return costOfCalls(world.redis, server, calls, AT_ONCE, (index) => ({
      headers: headers[index % headers.length] ?? {},
    }))
  }
  for (const server of contenders) await measure(server, WARM_UP_CALLS)
  const results = await rounds(contenders, ROUNDS, (server) => measure(server, CALLS))
  const of = figuresOf(results)
  return {
    name: 'budget',
    title: 'A call with the upstream budget',
    tables: [
      tableOf('A GET of 1.1 KB', [OFF, ON], {
        'CPU µs per call': (name) => shown(spread(of(name, 'cpuMicros')), 0),
        [`${OFF} = 1`]: (name) => shown(ratio(of(name, 'cpuMicros'), of(OFF, 'cpuMicros'))),
        'Redis commands': (name) => shownMedian(of(name, 'redisCommands'), 4),
      }),
    ],
    notes: [
      `${ROUNDS} rounds of ${CALLS} calls each, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}. Each round starts with another kind.`,
      'The budget is never used up. How many commands a call costs when it is, is in docs/operating/limits-and-budget.md.',
    ],
    raw: results,
  }
}
