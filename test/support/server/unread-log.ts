import { Agent, request } from 'node:http'
import type { Test } from 'tap'
import { valueOf } from '../telemetry/metrics.ts'
import { nextEvent, until } from '../time/until.ts'
import type { ServerProcess } from './server-process.ts'

type Line = Record<string, unknown> & { msg: string }

/** The message of the last line of a process that has lost lines of its log. */
export const LOST = 'lines of the log were lost at the exit: nothing reads it, or it cannot be written'
/** The address of the ops listener. */
export const opsUrlOf = ({ opsPort }: ServerProcess): string => `http://127.0.0.1:${opsPort}`
/** The parsed lines of a log. */
export const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

/** Asks for a page that does not exist, so often. Each request has a line in the log. */
async function ask(port: number, times: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  const path = `/${'x'.repeat(64)}`
  const one = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path, agent }, (response) => response.resume().on('end', resolve))
        .on('error', reject)
        .end()
    })
  await Promise.all(Array.from({ length: times }, one))
  agent.destroy()
}

/** Stops to read the log of a server, and has it write more than the pipe and this process hold, until so many bytes wait. */
export async function hang(server: ServerProcess, bytes = 100_000): Promise<void> {
  server.child.stdout?.pause()
  await until(async () => {
    await ask(server.port, 500)
    return ((await valueOf(opsUrlOf(server), 'bff_log_waiting_bytes')) ?? 0) > bytes
  }, 'lines wait')
}

/** Waits for the exit, and then reads what was left in the pipe. */
export async function exitOf(
  server: ServerProcess,
): Promise<{ code: number | null; signal: string | null; ms: number }> {
  const since = performance.now()
  const [code, signal] = (await nextEvent(server.child, 'exit')) as [number | null, string | null]
  const ms = performance.now() - since
  server.child.stdout?.resume()
  await server.exited
  return { code, signal, ms }
}

/** Every line of the log is there or was counted. A part of the first chunk that was lost may have been read. */
export function checkCounted(t: Test, server: ServerProcess, requests: number): void {
  const { stdout, stderr } = server.output()
  const read = stdout.split('\n').filter((line) => line.includes('"msg":"request"')).length
  const lost = linesOf(stderr).reduce((sum, { lines }) => sum + Number(lines), 0)
  t.ok(read + lost >= requests, `${read} read and ${lost} lost of ${requests}`)
  t.ok(read + lost < requests + 200, `${read} read and ${lost} lost of ${requests}`)
}

/** How many requests were answered. */
export const requestsOf = async (server: ServerProcess): Promise<number> => {
  const text = await (await fetch(`${opsUrlOf(server)}/metrics`)).text()
  const counts = [...text.matchAll(/^bff_http_request_duration_seconds_count\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}
