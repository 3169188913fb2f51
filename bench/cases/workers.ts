import { freePort } from '../../sandbox/listening.ts'
import { logInMany, publicOrigin, settingsOf, startThisServer, THIS_SERVER } from '../contenders.ts'
import { shown, type Report } from '../report.ts'
import { apiUrl, measure, type RestRound, type Running } from '../rest-load.ts'
import { rounds, spread } from '../rounds.ts'
import { startWorld } from '../world.ts'

const ROUNDS = 3
const SECONDS = 3
const COUNTS = ['1', '2'] as const
const CONNECTIONS = 64

/** Measures one and two workers on all processors. */
export async function workers(): Promise<Report> {
  const ports = await Promise.all(COUNTS.map(() => freePort()))
  const world = await startWorld(ports.map((port) => `${publicOrigin(port)}/auth/callback`))
  const contenders: Running[] = []
  const missing: string[] = []
  for (const [index, count] of COUNTS.entries()) {
    const port = ports[index] ?? 0
    try {
      const program = await startThisServer(
        { ...settingsOf(world, port), WORKERS: count },
        // The workers are not bound to processors, as they share all of them with the load.
        { on: 'any' },
      )
      const cookies = await logInMany(port, 10)
      contenders.push({ name: `WORKERS=${count}`, program, url: apiUrl(port), cookies })
    } catch (error) {
      missing.push(`**Missing: WORKERS=${count}**: ${(error as Error).message.trim().replaceAll(/\s+/g, ' ')}`)
    }
  }
  for (const contender of contenders) await measure(world, contender, 1, CONNECTIONS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, SECONDS, CONNECTIONS))
  const of = (name: string, figure: keyof RestRound): number[] => results.get(name)?.map((round) => round[figure]) ?? []
  return {
    name: 'workers',
    title: 'More than one process',
    tables: [
      {
        title: `${THIS_SERVER} on all processors, shared with the load`,
        columns: ['', 'requests/s', 'CPU µs per request', 'p99 ms', 'RSS MiB'],
        rows: contenders.map(({ name }) => [
          name,
          shown(spread(of(name, 'requestsPerSecond')), 0),
          shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
          spread(of(name, 'p99Ms')).median.toFixed(1),
          spread(of(name, 'rssMib')).median.toFixed(0),
        ]),
      },
    ],
    goals: [],
    notes: [
      'If load, upstream and server share two processors, little is left for a second worker. CPU time is the figure to trust.',
      ...missing,
    ],
    raw: Object.fromEntries(results),
  }
}
