import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { BROWSER_HEADERS } from './contenders.ts'
import type { Latencies, Pace } from './load/pacer.ts'
import { Program } from './program.ts'
import type { Running } from './rest-load.ts'

/** What a constant rate came to. */
export type Paced = Latencies & { readonly cpuMicrosPerRequest: number }

/** Loads a contender at a constant rate. @throws Error when not every request is answered with 200 */
export async function pace(
  { url, cookies, name, program }: Running,
  order: Pick<Pace, 'perSecond' | 'seconds' | 'connections'>,
): Promise<Paced> {
  const { host, port, pathname } = new URL(url)
  const requests = cookies.map((cookie) =>
    [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Cookie: ${cookie}`, ...BROWSER_HEADERS, '', ''].join(
      '\r\n',
    ),
  )
  const file = fileURLToPath(new URL('load/pacer.ts', import.meta.url))
  const pacer = new Program('pacer', process.execPath, [file], { ipc: true, on: 'others' })
  const ended = once(pacer.child, 'exit')
  const told = async (): Promise<unknown> => {
    const answer = await Promise.race([once(pacer.child, 'message'), ended.then(() => undefined)])
    if (answer === undefined) throw new Error(`${name}: ${pacer.lastWords()}`)
    return answer[0]
  }
  pacer.child.send({ ...order, port: Number(port), requests } satisfies Pace)
  await told()
  const before = program.cpuMs()
  pacer.child.send('go')
  const latencies = (await told()) as Latencies
  const cpuMicrosPerRequest = ((program.cpuMs() - before) * 1000) / latencies.answers
  await ended
  await pacer.stop()
  return { ...latencies, cpuMicrosPerRequest }
}
