import { Actor } from './actor.ts'
import type { Latencies, Pace } from './load/pacer.ts'
import { BROWSER_HEADERS, requestTexts } from './load/request-texts.ts'
import type { Running } from './rest-load.ts'

/** So much memory that the pacer collects no garbage while it measures: its own pause would count as a latency. */
const NO_PAUSES = ['--min-semi-space-size=256', '--max-semi-space-size=256']

/** Latencies and CPU time at a constant rate. */
export type Paced = Latencies & { readonly cpuMicrosPerRequest: number }

/** Loads a contender at a constant rate. @throws Error unless the response to every request is 200 */
export async function pace(
  { url, cookies, name, program }: Running,
  load: Pick<Pace, 'perSecond' | 'seconds' | 'connections'>,
): Promise<Paced> {
  const requests = requestTexts(url, BROWSER_HEADERS, cookies)
  const pacer = new Actor<Pace | 'go', Latencies>(`pacer of ${name}`, 'pacer.ts', NO_PAUSES)
  await pacer.order({ ...load, port: Number(new URL(url).port), requests })
  const before = program.cpuMs()
  const latencies = await pacer.order('go')
  const cpuMicrosPerRequest = ((program.cpuMs() - before) * 1000) / latencies.responses
  await pacer.program.stop()
  return { ...latencies, cpuMicrosPerRequest }
}
