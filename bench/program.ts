import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

const PAGE_BYTES = 4096
const TAIL_BYTES = 2000
/** Longer than any contender needs to exit after its stop signal. */
const STOP_MS = 10_000

/** The folder for configurations, logs and cookies of this run. It is removed at the end. */
export const workDir = mkdtempSync(join(tmpdir(), 'bff-bench-'))

process.once('exit', () => rmSync(workDir, { recursive: true, force: true }))

const running = new Set<Program>()
const closers: (() => Promise<unknown>)[] = []

/**
 * With two or more processors, the measured contender has the first one to itself, and load, upstream and Redis share the
 * others. Without this, they would compete for all processors, and a profile would show waiting as work.
 */
const LAST = availableParallelism() - 1
const CORES = { measured: '0', others: `1-${LAST}`, any: `0-${LAST}` }
const mayPin = LAST > 0 && spawnSync('taskset', ['--version']).status === 0
// The provider runs in this process, and some load.
if (mayPin) spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', CORES.others, String(process.pid)])

/** The processors that a program is bound to. */
export type Processors = keyof typeof CORES

/** How a program is started. */
interface ProgramOptions {
  readonly on: Processors
  /** Its environment, to which only PATH is added. */
  readonly env?: Readonly<Record<string, string>>
  /** SIGTERM by default. */
  readonly stopSignal?: NodeJS.Signals
  /** Whether it exchanges messages with the bench. */
  readonly ipc?: boolean
}

/** A program that the bench has started, with all of its child processes. */
export class Program {
  readonly name: string
  readonly child: ChildProcess
  /** The file that receives its stdout and stderr. */
  readonly logFile: string
  readonly #stopSignal: NodeJS.Signals

  constructor(name: string, command: string, args: readonly string[], options: ProgramOptions) {
    this.name = name
    this.logFile = join(workDir, `${name.replaceAll(/\W+/g, '-')}-${running.size}.log`)
    this.#stopSignal = options.stopSignal ?? 'SIGTERM'
    const log = openSync(this.logFile, 'a')
    const [program = '', ...all] = [...pinning(options.on), command, ...args]
    this.child = spawn(program, all, {
      // Debian installs nginx and Apache in /usr/sbin, which may not be in PATH.
      env: { PATH: `${process.env['PATH']}:/usr/sbin`, ...options.env },
      cwd: workDir,
      stdio: ['ignore', log, log, ...(options.ipc === true ? ['ipc' as const] : [])],
      // In a process group of its own, so that Ctrl-C reaches only the bench, which then stops everything.
      detached: true,
    })
    this.child.once('error', () => undefined)
    running.add(this)
  }

  get isRunning(): boolean {
    return this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null
  }

  /** CPU time in ms that its processes and threads have used so far, without those that have exited. */
  cpuMs(): number {
    let nanos = 0
    for (const pid of this.#pids()) nanos += threadNanos(pid)
    return nanos / 1e6
  }

  /** Resident memory of all of its processes. Shared memory is counted once for each process. */
  rssBytes(): number {
    let pages = 0
    for (const pid of this.#pids()) pages += Number(statFields(pid)[21] ?? 0)
    return pages * PAGE_BYTES
  }

  /** Sends its stop signal, and kills it if that does not suffice. */
  async stop(): Promise<void> {
    running.delete(this)
    if (!this.isRunning) return
    const exited = once(this.child, 'exit')
    this.child.kill(this.#stopSignal)
    const timer = setTimeout(() => this.kill(), STOP_MS)
    await exited
    clearTimeout(timer)
  }

  /** Kills all of its processes. */
  kill(): void {
    for (const pid of this.#pids().toReversed()) signalQuietly(pid)
  }

  /** The end of its log, for an error message. The whole may be longer than a string can be. */
  logTail(): string {
    const log = openSync(this.logFile, 'r')
    const { size } = fstatSync(log)
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
    readSync(log, tail, 0, tail.length, size - tail.length)
    closeSync(log)
    return tail.toString()
  }

  #pids(): number[] {
    return this.child.pid === undefined ? [] : withDescendants(this.child.pid)
  }
}

/** Registers something that {@link endAll} closes; the latest is closed first. */
export function atEnd(close: () => Promise<unknown>): void {
  closers.unshift(close)
}

/** Stops all programs and closes everything that is registered. */
export async function endAll(): Promise<void> {
  await Promise.all([...running].map((program) => program.stop()))
  for (const close of closers.splice(0)) await close()
}

/** Like {@link endAll}, but kills the programs; for Ctrl-C. */
export async function killAll(): Promise<void> {
  for (const program of running) program.kill()
  await endAll()
}

/** The words before a command that bind it to processors; empty if it is not bound. */
export function pinning(on: Processors): string[] {
  return mayPin ? ['taskset', '--cpu-list', CORES[on]] : []
}

/** The fields of /proc/<pid>/stat after the command name, which may contain spaces; the first one is the state (proc(5)). */
function statFields(pid: number): string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Reads a file of /proc; empty if its process or thread has exited. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

/** CPU time from schedstat, as that in stat is in hundredths of a second and too coarse for short rounds. */
function threadNanos(pid: number): number {
  const task = `/proc/${pid}/task`
  const threads = existsSync(task) ? readdirSync(task) : []
  return threads.reduce((sum, thread) => sum + Number(read(`${task}/${thread}/schedstat`).split(' ', 1)[0]), 0)
}

function withDescendants(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim()
  const pids = children === '' ? [] : children.split(' ').map(Number)
  return [pid, ...pids.flatMap(withDescendants)]
}

function signalQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has exited.
  }
}
