import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { thisServer, THIS_SERVER } from '../contenders.ts'
import { selfTimes, type SelfTimes } from '../cpu-profile.ts'
import { workDir } from '../program.ts'
import type { Report, Table } from '../report.ts'
import { measure, startServers, type Choice, type Running } from '../rest-load.ts'

const WARM_UP_SECONDS = 3
const SECONDS = 8
const MAX_ROWS = 40

/** The CPU times of a server under the profiler, which adds overhead to everything. */
interface Profile {
  readonly name: string
  readonly microsPerRequest: number
  readonly times: SelfTimes
}

/** Profiles the REST load in this server, and in another checkout of it if there is one. */
export async function profile({ before }: Choice): Promise<Report> {
  const profiles = [await profileOf(THIS_SERVER)]
  if (before !== undefined) profiles.push(await profileOf('before', before))
  return {
    name: 'profile',
    title: 'CPU time of a proxied GET by code',
    tables: [
      table('By package and folder of src', profiles, ({ groups }) => groups),
      table('By function', profiles, ({ functions }) => functions),
    ],
    notes: [
      `Self times in samples of the main thread during ${SECONDS} s of the REST load, scaled to the CPU µs per request of all threads: ${profiles.map(({ name, microsPerRequest }) => `${microsPerRequest.toFixed(1)} (${name})`).join(', ')}. The profiler adds overhead to everything.`,
    ],
    raw: profiles.map(({ name, microsPerRequest }) => ({ name, microsPerRequest })),
  }
}

async function profileOf(name: string, root?: string): Promise<Profile> {
  const dir = mkdtempSync(join(workDir, 'profile-'))
  const flags = ['--cpu-prof', `--cpu-prof-dir=${dir}`, '--cpu-prof-interval=500']
  const { world, contenders } = await startServers([thisServer(name, { flags, root })])
  const [server] = contenders as [Running]
  await measure(world, server, WARM_UP_SECONDS)
  const from = monotonicMicros()
  const round = await measure(world, server, SECONDS)
  const to = monotonicMicros()
  await server.program.stop()
  const [file = ''] = readdirSync(dir)
  return { name, microsPerRequest: round.cpuMicrosPerRequest, times: selfTimes(join(dir, file), from, to) }
}

/** A table of the entries that took longest in any profile. */
function table(
  title: string,
  profiles: readonly Profile[],
  rowsOf: (times: SelfTimes) => ReadonlyMap<string, number>,
): Table {
  const names = new Set(profiles.flatMap(({ times }) => [...rowsOf(times).keys()]))
  const micros = (name: string, { times, microsPerRequest }: Profile): number =>
    ((rowsOf(times).get(name) ?? 0) / times.totalMicros) * microsPerRequest
  const maximum = (name: string): number => Math.max(...profiles.map((profile) => micros(name, profile)))
  const rows = [...names].toSorted((one, other) => maximum(other) - maximum(one)).slice(0, MAX_ROWS)
  return {
    title,
    columns: ['', ...profiles.flatMap(({ name }) => [`${name}, µs`, '%'])],
    rows: rows.map((name) => [name].concat(profiles.flatMap((profile) => cells(micros(name, profile), profile)))),
  }
}

function cells(micros: number, { microsPerRequest }: Profile): string[] {
  return [micros.toFixed(2), ((100 * micros) / microsPerRequest).toFixed(1)]
}

function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
