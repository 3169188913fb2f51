import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../sandbox/listening.ts'
import { logInMany, publicOrigin, settingsOf, startThisServer, THIS_SERVER } from '../contenders.ts'
import { selfTimes, type SelfTimes } from '../cpu-profile.ts'
import { workDir } from '../program.ts'
import type { Report, Table } from '../report.ts'
import { apiUrl, measure, type Choice } from '../rest-load.ts'
import { startWorld, type World } from '../world.ts'

const WARM_UP_SECONDS = 3
const SECONDS = 8
const FUNCTIONS = 40

/** A server under the profiler; the profiler itself makes all of it dearer. */
interface Profile {
  readonly name: string
  readonly microsPerRequest: number
  readonly times: SelfTimes
}

/** Where the processor time of the REST load goes in this server, and where it went in another checkout of it. */
export async function profile({ before }: Choice): Promise<Report> {
  const ports = await Promise.all([freePort(), freePort()])
  const world = await startWorld(ports.map((port) => `${publicOrigin(port)}/auth/callback`))
  const own = await profileOf(world, THIS_SERVER, ports[0])
  const profiles = before === undefined ? [own] : [own, await profileOf(world, 'before', ports[1], before)]
  return {
    name: 'profile',
    title: 'Where the processor time of a proxied GET goes',
    tables: [
      table('By package and chapter', profiles, ({ groups }) => groups),
      table('By function', profiles, ({ functions }) => functions),
    ],
    goals: [],
    notes: [
      `Self times of the main thread's samples, ${SECONDS} s of the REST load, as shares of the µs of all threads: ${profiles.map(({ name, microsPerRequest }) => `${microsPerRequest.toFixed(1)} (${name})`).join(', ')}. The profiler makes everything dearer.`,
    ],
    raw: profiles.map(({ name, microsPerRequest }) => ({ name, microsPerRequest })),
  }
}

async function profileOf(world: World, name: string, port: number, root?: string): Promise<Profile> {
  const dir = mkdtempSync(join(workDir, 'profile-'))
  const flags = ['--cpu-prof', `--cpu-prof-dir=${dir}`, '--cpu-prof-interval=500']
  const program = await startThisServer(settingsOf(world, port), {
    flags,
    ...(root !== undefined && { root }),
  })
  const contender = { name, program, url: apiUrl(port), cookies: await logInMany(port, 20) }
  await measure(world, contender, WARM_UP_SECONDS)
  const from = monotonicMicros()
  const round = await measure(world, contender, SECONDS)
  const to = monotonicMicros()
  await program.stop()
  const [file = ''] = readdirSync(dir)
  return { name, microsPerRequest: round.cpuMicrosPerRequest, times: selfTimes(join(dir, file), from, to) }
}

/** What took longest in any of them first. */
function table(
  title: string,
  profiles: readonly Profile[],
  rowsOf: (times: SelfTimes) => ReadonlyMap<string, number>,
): Table {
  const names = new Set(profiles.flatMap(({ times }) => [...rowsOf(times).keys()]))
  const micros = (name: string, { times, microsPerRequest }: Profile): number =>
    ((rowsOf(times).get(name) ?? 0) / times.totalMicros) * microsPerRequest
  const most = (name: string): number => Math.max(...profiles.map((profile) => micros(name, profile)))
  const rows = [...names].toSorted((one, other) => most(other) - most(one)).slice(0, FUNCTIONS)
  return {
    title,
    columns: ['', ...profiles.flatMap(({ name }) => [`${name}, µs`, '%'])],
    rows: rows.map((name) =>
      [name].concat(profiles.flatMap((profile) => shown(micros(name, profile), profile))),
    ),
  }
}

function shown(micros: number, { microsPerRequest }: Profile): string[] {
  return [micros.toFixed(2), ((100 * micros) / microsPerRequest).toFixed(1)]
}

function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
