import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { endWithProcess } from '../../../sandbox/end-with-process.ts'
import { freePort } from '../../../sandbox/listening.ts'
import { scanLog } from '../telemetry/log-scan.ts'
import { COMPILED, nodeCommand } from './settings.ts'
import { until, within } from '../time/until.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

/** A start compiles the program, and waits for Redis. */
const START_MS = 30_000
/** A drain takes up to DRAIN_SECONDS, which is 20 unless a test wants more of a process that must end sooner. */
const EXIT_MS = 30_000

/** The server as a process of its own. */
export interface ServerProcess {
  readonly child: ChildProcess
  /** The address of both listeners. */
  readonly host: string
  readonly port: number
  readonly opsPort: number
  /** Its output so far. */
  output(): { stdout: string; stderr: string }
  /** Resolves with the exit code, null after a signal; the deadline starts when this is read. */
  readonly exited: Promise<number | null>
}

/** Options of a server process beside its settings. */
export interface ProcessOptions {
  /** The most files that it may have open. */
  readonly descriptors?: number
  /** A file for its log, instead of a pipe. */
  readonly log?: string
  /** Command-line options of Node.js. */
  readonly nodeOptions?: readonly string[]
  /** The program, unless it is that of this repository. */
  readonly main?: string
  /** Whether that is of a version before this one, whose audit lines another schema describes. */
  readonly isOlder?: boolean
  /** Command-line options of the server. */
  readonly arguments?: readonly string[]
}

/** Starts `node src/main.ts` with these settings only; it ends with the test. */
export async function serverProcess(
  t: Test,
  settings: Record<string, string>,
  { descriptors, log, nodeOptions = [], main = MAIN, isOlder = false, arguments: options = [] }: ProcessOptions = {},
): Promise<ServerProcess> {
  const host = settings['HOST'] ?? '127.0.0.1'
  const port = Number(settings['PORT'] ?? (await freePort()))
  const opsPort = Number(settings['OPS_PORT'] ?? (await freePort()))
  const limit = descriptors === undefined ? '' : `ulimit -n ${descriptors} && `
  const redirect = log === undefined ? '' : ` >${log}`
  const words = [...nodeCommand(settings['NODE_OPTIONS']), ...nodeOptions, main, ...options]
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"${redirect}`, ...words], {
    env: { ...COMPILED, PORT: String(port), OPS_PORT: String(opsPort), ...settings, HOST: host },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A directory without a .env file.
    cwd: fileURLToPath(new URL('..', import.meta.url)),
  })
  endWithProcess(child)
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  // 'close' and not 'exit', because all output has arrived by then.
  const closed = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  const exited = (): Promise<number | null> => within(closed, 'a server exits', EXIT_MS)
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited()
    scanLog(t, `${output.stdout}\n${output.stderr}`, isOlder)
  })
  return {
    child,
    host,
    port,
    opsPort,
    output: () => output,
    get exited() {
      return exited()
    },
  }
}

/** Resolves with true once the server is ready, with false once its process has exited. */
export async function ready({ host, opsPort, child }: ServerProcess, deadlineMs = START_MS): Promise<boolean> {
  let isReady = false
  const check = async (): Promise<boolean> => {
    const response = await fetch(`http://${host}:${opsPort}/readyz`).catch(() => undefined)
    isReady = response?.ok === true
    return isReady || child.exitCode !== null
  }
  await until(check, 'the server is ready, or has exited', deadlineMs)
  return isReady
}
