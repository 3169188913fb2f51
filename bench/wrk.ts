import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pinning, workDir } from './program.ts'

/** What wrk saw. Its latencies are those of a full load, where everybody waits in line. */
export interface WrkResult {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Connections that failed or waited too long. */
  readonly errors: number
}

/** What wrk asks for. */
export interface WrkLoad {
  readonly url: string
  readonly seconds: number
  readonly connections: number
  /** Sent with every request, as `Name: value`. */
  readonly headers: readonly string[]
  /** One Cookie header for each session; request after request takes the next. */
  readonly cookies: readonly string[]
}

const SCRIPT = fileURLToPath(new URL('load/rotate.lua', import.meta.url))
const run = promisify(execFile)

/** Loads a server as hard as one thread can. @throws Error when wrk is not installed or nobody answers */
export async function wrk({ url, seconds, connections, headers, cookies }: WrkLoad): Promise<WrkResult> {
  const cookieFile = join(workDir, 'cookies')
  writeFileSync(cookieFile, cookies.map((line) => `${line}\n`).join(''))
  const [program, ...before] = [...pinning('others'), 'wrk']
  const { stdout } = await run(program, [
    ...before,
    ...['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--latency'],
    ...headers.flatMap((header) => ['--header', header]),
    ...['--script', SCRIPT, url, '--', cookieFile],
  ])
  const found = /^result (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(stdout)
  if (found === null) throw new Error(`wrk said: ${stdout}`)
  const [requests = 0, micros = 0, errors = 0, p50 = 0, p99 = 0] = found.slice(1).map(Number)
  return { requests, seconds: micros / 1e6, errors, p50Ms: p50 / 1000, p99Ms: p99 / 1000 }
}
