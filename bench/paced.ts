import { Actor } from './actor.ts'
import type { Latencies, Pace, Timed } from './load/pacer.ts'
import type { Spell } from './load/speed.ts'
import { BROWSER_HEADERS, requestTexts } from './load/request-texts.ts'
import { measure, type Running } from './rest-load.ts'
import { quantile } from './rounds.ts'
import type { World } from './world.ts'

/** So much memory that the pacer collects no garbage while it measures: its own pause would count as a latency. */
const NO_PAUSES = ['--min-semi-space-size=256', '--max-semi-space-size=256']
/** What queued up while the machine was slow is served within this time. */
const AFTER_MS = 40
const CONNECTIONS = 64
/** Long enough for V8 to compile hot code, which blocks the one processor for tens of ms and would distort latencies. */
const WARM_UP_SECONDS = 4
const WARM_UP_ROUNDS = 3
const WARM_UP_ROUND_SECONDS = 2

/** Latencies in ms, and CPU time, at a constant rate. */
export interface Paced {
  readonly p50: number
  readonly p99: number
  readonly max: number
  /** The time of each response that counts. */
  readonly times: readonly number[]
  readonly responses: number
  readonly ownP99: number
  readonly cpuMicrosPerRequest: number
}

/** The process that notices when the machine itself is slow. */
let probe: Actor<'spells', readonly Spell[]> | undefined

/**
 * Loads a contender at a constant rate. The requests that were under way while the machine was slow do not count, unless
 * it was slow all the time.
 * @throws Error unless the response to every request is 200
 */
export async function pace(
  { url, cookies, name, program }: Running,
  load: Pick<Pace, 'perSecond' | 'seconds'> & { readonly connections?: number },
): Promise<Paced> {
  const requests = requestTexts(url, BROWSER_HEADERS, cookies)
  const pacer = new Actor<Pace | 'go', Latencies>(`pacer of ${name}`, 'pacer.ts', NO_PAUSES)
  await pacer.order({ connections: CONNECTIONS, ...load, port: Number(new URL(url).port), requests })
  if (probe?.program.isRunning !== true) probe = new Actor('speed probe', 'speed.ts')
  await probe.order('spells')
  const before = program.cpuMs()
  const { times: all, ...counts } = await pacer.order('go')
  const cpuMicrosPerRequest = ((program.cpuMs() - before) * 1000) / counts.responses
  const spells = await probe.order('spells')
  await pacer.program.stop()
  const calm = all.filter((timed) => !spells.some((spell) => overlaps(timed, spell)))
  const times = (calm.length > 0 ? calm : all).map(([, ms]) => ms)
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantile(times, share)) as [number, number, number]
  return { ...counts, p50, p99, max, times, cpuMicrosPerRequest }
}

/** Requests per second that keep a processor half busy. Each costs more CPU time than a request under full load. */
export async function halfLoad(world: World, contender: Running): Promise<number> {
  const { cpuMicrosPerRequest } = await measure(world, contender, WARM_UP_SECONDS)
  let perSecond = 5e5 / cpuMicrosPerRequest
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    perSecond = 5e5 / (await pace(contender, { perSecond, seconds: WARM_UP_ROUND_SECONDS })).cpuMicrosPerRequest
  }
  return perSecond
}

function overlaps([sentAt, ms]: Timed, [from, to]: Spell): boolean {
  return sentAt + ms >= from && sentAt <= to + AFTER_MS
}
