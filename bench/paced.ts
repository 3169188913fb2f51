import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { BROWSER_HEADERS } from './contenders.ts'
import type { Latencies, Pace } from './load/pacer.ts'
import { requestTexts } from './load/request-texts.ts'
import { Program } from './program.ts'
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
  const file = fileURLToPath(new URL('load/pacer.ts', import.meta.url))
  const pacer = new Program('pacer', process.execPath, [...NO_PAUSES, file], { ipc: true, on: 'others' })
  const ended = once(pacer.child, 'exit')
  const nextMessage = async (): Promise<unknown> => {
    const message = await Promise.race([once(pacer.child, 'message'), ended.then(() => undefined)])
    if (message === undefined) throw new Error(`${name}: ${pacer.logTail()}`)
    return message[0]
  }
  pacer.child.send({ ...load, port: Number(new URL(url).port), requests } satisfies Pace)
  await nextMessage()
  const before = program.cpuMs()
  pacer.child.send('go')
  const latencies = (await nextMessage()) as Latencies
  const cpuMicrosPerRequest = ((program.cpuMs() - before) * 1000) / latencies.responses
  await ended
  await pacer.stop()
  return { ...latencies, cpuMicrosPerRequest }
}
