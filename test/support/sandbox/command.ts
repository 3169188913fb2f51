import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { COMPILED } from '../server/settings.ts'

/** A command that has been started. */
export interface RunningCommand {
  /** What it has printed so far. */
  readonly output: { stdout: string; stderr: string }
  /** Resolves with its exit code after its last output. */
  readonly exited: Promise<unknown>
  /** Sends a signal to its process group. */
  readonly signal: (name: NodeJS.Signals) => void
}

/** Starts a command with nothing but this environment, in a process group that ends with the test. */
export function runCommand(
  t: Test,
  [command, ...args]: readonly [string, ...string[]],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string },
): RunningCommand {
  const child = spawn(command, args, { ...options, detached: true })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const exited = once(child, 'close').then(([code]: unknown[]) => code)
  const signal = (name: NodeJS.Signals): void => void process.kill(-(child.pid ?? 0), name)
  t.teardown(() => {
    if (child.exitCode === null && child.signalCode === null) signal('SIGKILL')
  })
  return { output, exited, signal }
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Runs a script of package.json, as in a user's shell: without the options of the test runner, and with the machine's own Node.js. */
export function runNpm(t: Test, args: readonly string[], env: Record<string, string>): RunningCommand {
  // That Node.js may be older.
  const { PATH = '', HOME } = process.env
  const path = PATH.split(':').filter((folder) => !folder.includes('node_modules'))
  const options = { cwd: ROOT, env: { ...COMPILED, PATH: path.join(':'), HOME, ...env } }
  return runCommand(t, ['npm', 'run', '--silent', ...args], options)
}
