import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../sandbox/listening.ts'
import { logInMany, publicOrigin, settingsOf, startThisServer, THIS_SERVER } from '../contenders.ts'
import { selfTimes } from '../cpu-profile.ts'
import { workDir } from '../program.ts'
import type { Report, Table } from '../report.ts'
import { apiUrl, measure } from '../rest-load.ts'
import { startWorld } from '../world.ts'

const WARM_UP_SECONDS = 3
const SECONDS = 8
const FUNCTIONS = 40

/** Where the processor time of the REST load goes in this server; the profiler itself makes all of it dearer. */
export async function profile(): Promise<Report> {
  const port = await freePort()
  const world = await startWorld([`${publicOrigin(port)}/auth/callback`])
  const dir = join(workDir, 'profiles')
  mkdirSync(dir)
  const flags = ['--cpu-prof', `--cpu-prof-dir=${dir}`, '--cpu-prof-interval=500']
  const program = await startThisServer(settingsOf(world, port), { flags })
  const contender = { name: THIS_SERVER, program, url: apiUrl(port), cookies: await logInMany(port, 20) }
  await measure(world, contender, WARM_UP_SECONDS)
  const from = monotonicMicros()
  const round = await measure(world, contender, SECONDS)
  const to = monotonicMicros()
  await program.stop()
  const [file = ''] = readdirSync(dir)
  const times = selfTimes(join(dir, file), from, to)
  const microsPerRequest = round.cpuMicrosPerRequest
  const table = (title: string, rows: ReadonlyMap<string, number>): Table => ({
    title,
    columns: ['', 'µs a request', '%'],
    rows: [...rows].slice(0, FUNCTIONS).map(([name, micros]) => {
      const share = micros / times.totalMicros
      return [name, (share * microsPerRequest).toFixed(2), (100 * share).toFixed(1)]
    }),
  })
  return {
    name: 'profile',
    title: 'Where the processor time of a proxied GET goes',
    tables: [table('By package and chapter', times.groups), table('By function', times.functions)],
    goals: [],
    notes: [
      `Self times of the main thread's samples, ${SECONDS} s of the REST load, as shares of the ${microsPerRequest.toFixed(1)} µs of all threads; the profiler makes everything dearer.`,
    ],
    raw: round,
  }
}

function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
