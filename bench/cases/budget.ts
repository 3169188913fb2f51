import { Pool } from 'undici'
import { freePort } from '../../sandbox/listening.ts'
import { BROWSER_HEADERS, logInMany, publicOrigin, settingsOf, startThisServer } from '../contenders.ts'
import type { Program } from '../program.ts'
import { shown, type Report } from '../report.ts'
import { apiUrl } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'
import { startWorld, type World } from '../world.ts'

const ROUNDS = 11
const CALLS = 2500
const WARM_UP_CALLS = 5000
const AT_ONCE = 8
const OFF = 'without a budget'
const ON = 'with a budget'
/** More than the load has calls. A new ledger is quiet for five seconds where the shortest window is half a minute. */
const BUDGET = { UPSTREAM_BUDGET: '1000000/30,1000000/600' }

interface Server {
  readonly name: string
  readonly program: Program
  readonly port: number
  readonly cookie: string
}

interface Round {
  readonly cpuMicros: number
  readonly redisCommands: number
}

/** Measures a GET with and without UPSTREAM_BUDGET. */
export async function budget(): Promise<Report> {
  const [port, otherPort] = [await freePort(), await freePort()]
  const world = await startWorld([port, otherPort].map((each) => `${publicOrigin(each)}/auth/callback`))
  const servers = [await started(world, port, OFF, {}), await started(world, otherPort, ON, BUDGET)]
  for (const server of servers) await measure(world, server, WARM_UP_CALLS)
  const results = await rounds(servers, ROUNDS, (server) => measure(world, server, CALLS))
  const of = (name: string, figure: keyof Round): number[] => results.get(name)?.map((round) => round[figure]) ?? []
  return {
    name: 'budget',
    title: 'A call with the upstream budget',
    tables: [
      {
        title: 'A GET of 1.1 KB',
        columns: ['', 'CPU µs per call', `${OFF} = 1`, 'Redis commands'],
        rows: servers.map(({ name }) => [
          name,
          shown(spread(of(name, 'cpuMicros')), 0),
          shown(ratio(of(name, 'cpuMicros'), of(OFF, 'cpuMicros'))),
          spread(of(name, 'redisCommands')).median.toFixed(4),
        ]),
      },
    ],
    goals: [],
    notes: [
      `${ROUNDS} rounds of ${CALLS} calls each, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}. Each round starts with another kind.`,
      'The budget is never used up. How many commands a call costs when it is, is in docs/operating/limits-and-budget.md.',
    ],
    raw: Object.fromEntries(results),
  }
}

async function started(world: World, port: number, name: string, more: Record<string, string>): Promise<Server> {
  const program = await startThisServer({ ...settingsOf(world, port), ...more })
  const [cookie = ''] = await logInMany(port, 1)
  return { name, program, port, cookie }
}

/** Makes calls, and divides what they cost by their number. @throws Error if one of them fails */
async function measure({ redis }: World, { program, port, cookie }: Server, calls: number): Promise<Round> {
  const { origin, pathname: path } = new URL(apiUrl(port))
  const headers = Object.fromEntries(BROWSER_HEADERS.map((line) => line.split(': ') as [string, string]))
  const pool = new Pool(origin, { connections: AT_ONCE })
  let left = calls
  const call = async (): Promise<void> => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({ method: 'GET', path, headers: { ...headers, cookie } })
      await body.dump()
      if (statusCode !== 200) throw new Error(`a call got ${statusCode}: ${program.logTail()}`)
    }
  }
  const before = { cpu: program.cpuMs(), commands: await redis.commands() }
  await Promise.all(Array.from({ length: AT_ONCE }, call))
  await pool.close()
  return {
    cpuMicros: ((program.cpuMs() - before.cpu) * 1000) / calls,
    redisCommands: ((await redis.commands()) - before.commands) / calls,
  }
}
