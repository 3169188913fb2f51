import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { scanLog } from './log-scan.ts'
import { COMPILED } from './settings.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** The server as a process of its own. */
export interface ServerProcess {
  readonly child: ChildProcess
  /** The address of both listeners. */
  readonly host: string
  readonly port: number
  readonly opsPort: number
  /** Everything it printed so far. */
  output(): { stdout: string; stderr: string }
  /** Resolves with the exit code. */
  exited: Promise<number | null>
}

/** How a server's process is started, beside its settings. */
export interface ProcessOptions {
  /** The most files that it may have open. */
  readonly descriptors?: number
  /** A file that takes its log, in place of a pipe that is read. */
  readonly log?: string
  /** Options of Node's. */
  readonly nodeOptions?: readonly string[]
}

/** Starts `node src/main.ts` with these settings only; it ends with the test. */
export async function serverProcess(
  t: Test,
  settings: Record<string, string>,
  { descriptors, log, nodeOptions = [] }: ProcessOptions = {},
): Promise<ServerProcess> {
  const host = settings['HOST'] ?? '127.0.0.1'
  const port = Number(settings['PORT'] ?? (await freePort()))
  const opsPort = Number(settings['OPS_PORT'] ?? (await freePort()))
  const limit = descriptors === undefined ? '' : `ulimit -n ${descriptors} && `
  const redirect = log === undefined ? '' : ` >${log}`
  const words = [process.execPath, ...nodeOptions, MAIN]
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"${redirect}`, ...words], {
    env: { ...COMPILED, PORT: String(port), OPS_PORT: String(opsPort), ...settings, HOST: host },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Not where a .env may lie about.
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  })
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  // 'close' and not 'exit': all output has come by then.
  const exited = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
    scanLog(t, `${output.stdout}\n${output.stderr}`)
  })
  return { child, host, port, opsPort, output: () => output, exited }
}

/** Resolves when the process says it is ready, or has ended. */
export async function ready({ host, opsPort, child }: ServerProcess): Promise<boolean> {
  while (child.exitCode === null) {
    const answer = await fetch(`http://${host}:${opsPort}/readyz`).catch(() => undefined)
    if (answer?.ok === true) return true
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
  return false
}
