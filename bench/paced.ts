import { Actor } from './actor.ts'
import type { Latencies, Pace, Timed } from './load/pacer.ts'
import type { Spell } from './load/speed.ts'
import { BROWSER_HEADERS, requestTexts } from './load/request-texts.ts'
import type { Running } from './rest-load.ts'
import { quantile } from './rounds.ts'

/** So much memory that the pacer collects no garbage while it measures: its own pause would count as a latency. */
const NO_PAUSES = ['--min-semi-space-size=256', '--max-semi-space-size=256']
/** What queued up while the machine was slow is served within this time. */
const AFTER_MS = 40

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
export type SpeedProbe = Actor<'spells', readonly Spell[]>

export const startSpeedProbe = (): SpeedProbe => new Actor('speed probe', 'speed.ts')

/**
 * Loads a contender at a constant rate.
 * @param probe leaves out the requests that were under way while the machine was slow, unless it was slow all the time
 * @throws Error unless the response to every request is 200
 */
export async function pace(
  { url, cookies, name, program }: Running,
  load: Pick<Pace, 'perSecond' | 'seconds' | 'connections'>,
  probe?: SpeedProbe,
): Promise<Paced> {
  const requests = requestTexts(url, BROWSER_HEADERS, cookies)
  const pacer = new Actor<Pace | 'go', Latencies>(`pacer of ${name}`, 'pacer.ts', NO_PAUSES)
  await pacer.order({ ...load, port: Number(new URL(url).port), requests })
  await probe?.order('spells')
  const before = program.cpuMs()
  const { times: all, ...counts } = await pacer.order('go')
  const cpuMicrosPerRequest = ((program.cpuMs() - before) * 1000) / counts.responses
  const spells = (await probe?.order('spells')) ?? []
  await pacer.program.stop()
  const calm = all.filter((timed) => !spells.some((spell) => overlaps(timed, spell)))
  const times = (calm.length > 0 ? calm : all).map(([, ms]) => ms)
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantile(times, share)) as [number, number, number]
  return { ...counts, p50, p99, max, times, cpuMicrosPerRequest }
}

function overlaps([sentAt, ms]: Timed, [from, to]: Spell): boolean {
  return sentAt + ms >= from && sentAt <= to + AFTER_MS
}
