import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { requestTexts } from './load/request-texts.ts'
import { pinning, workDir } from './program.ts'

/** The results of wrk. Its latencies are those under full load, where requests queue. */
interface WrkResult {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Requests that failed or timed out, and responses with an error status. */
  readonly errors: number
}

/** The load that wrk generates. */
interface WrkLoad {
  readonly url: string
  readonly seconds: number
  readonly connections: number
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>
  /** A Cookie header for each session; successive requests use successive sessions. */
  readonly cookies: readonly string[]
}

/** The number of loads so far, since several may run at once. */
let loads = 0
/** Between two requests in the file that the script reads. */
const SEPARATOR = '\x1e'
const SCRIPT = fileURLToPath(new URL('load/rotate.lua', import.meta.url))
const run = promisify(execFile)

/** Loads a server with one thread of wrk. @throws Error if wrk is not installed or fails */
export async function wrk({ url, seconds, connections, headers, cookies }: WrkLoad): Promise<WrkResult> {
  const requestFile = join(workDir, `requests-${loads++}`)
  writeFileSync(requestFile, requestTexts(url, headers, cookies).join(SEPARATOR))
  const [program, ...before] = [...pinning('others'), 'wrk']
  const { stdout } = await run(program, [
    ...before,
    '--threads=1',
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    '--latency',
    `--script=${SCRIPT}`,
    url,
    '--',
    requestFile,
  ])
  rmSync(requestFile)
  const found = /^result (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(stdout)
  if (found === null) throw new Error(`wrk printed no result: ${stdout}`)
  const [requests = 0, micros = 0, errors = 0, p50 = 0, p99 = 0] = found.slice(1).map(Number)
  return { requests, seconds: micros / 1e6, errors, p50Ms: p50 / 1000, p99Ms: p99 / 1000 }
}
