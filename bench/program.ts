import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

const PAGE_BYTES = 4096
/** Longer than any contender needs to go in peace. */
const STOP_MS = 10_000

/** Everything this run writes beside its results: configurations, logs, cookies. Removed at the end. */
export const workDir = mkdtempSync(join(tmpdir(), 'bff-bench-'))

process.once('exit', () => rmSync(workDir, { recursive: true, force: true }))

const running = new Set<Program>()
const closers: (() => Promise<unknown>)[] = []

/**
 * Who is measured has the first processor for itself where there are two; load, upstream and Redis have the others.
 * Otherwise they take turns on both, and a profile shows the waiting as work.
 */
const CORES = { measured: '0', others: `1-${availableParallelism() - 1}` }
const mayPin = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0

/** How a program is started. */
export interface ProgramOptions {
  /** On which processors it runs; any without. */
  readonly on?: keyof typeof CORES
  /** Nothing else is in its environment but PATH. */
  readonly env?: Readonly<Record<string, string>>
  /** What it is asked to go with, where SIGTERM is not it. */
  readonly stopSignal?: NodeJS.Signals
  /** Talks with it by messages. */
  readonly ipc?: boolean
}

/** A program started by the bench: all of its processes, those it starts itself among them. */
export class Program {
  readonly name: string
  readonly child: ChildProcess
  /** Where it writes stdout and stderr. */
  readonly logFile: string
  readonly #stopSignal: NodeJS.Signals

  constructor(name: string, command: string, args: readonly string[], options: ProgramOptions = {}) {
    this.name = name
    this.logFile = join(workDir, `${name.replaceAll(/\W+/g, '-')}-${running.size}.log`)
    this.#stopSignal = options.stopSignal ?? 'SIGTERM'
    const log = openSync(this.logFile, 'a')
    const [program = '', ...all] = [...pinning(options.on), command, ...args]
    this.child = spawn(program, all, {
      // Where Debian installs nginx and Apache; not everybody has that in PATH.
      env: { PATH: `${process.env['PATH']}:/usr/sbin`, ...options.env },
      cwd: workDir,
      stdio: ['ignore', log, log, ...(options.ipc === true ? ['ipc' as const] : [])],
      // Its own group: Ctrl-C reaches only the bench, which then stops everything.
      detached: true,
    })
    this.child.once('error', () => undefined)
    running.add(this)
  }

  /** True until it has ended. */
  get isRunning(): boolean {
    return this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null
  }

  /** Processor time spent so far by all of its processes and threads, in ms, those that have ended left out. */
  cpuMs(): number {
    let nanos = 0
    for (const pid of this.#pids()) nanos += threadNanos(pid)
    return nanos / 1e6
  }

  /** Resident memory of all of its processes; what they share is counted for each. */
  rssBytes(): number {
    let pages = 0
    for (const pid of this.#pids()) pages += Number(statFields(pid)[21] ?? 0)
    return pages * PAGE_BYTES
  }

  /** Asks it to go, then makes it. */
  async stop(): Promise<void> {
    running.delete(this)
    if (!this.isRunning) return
    const gone = once(this.child, 'exit')
    this.child.kill(this.#stopSignal)
    const timer = setTimeout(() => this.kill(), STOP_MS)
    await gone
    clearTimeout(timer)
  }

  /** Ends all of its processes at once. */
  kill(): void {
    for (const pid of this.#pids().toReversed()) signalQuietly(pid)
  }

  /** Why it may have ended, for an error message. */
  lastWords(): string {
    return readFileSync(this.logFile, 'utf8').slice(-2000)
  }

  #pids(): number[] {
    return this.child.pid === undefined ? [] : withDescendants(this.child.pid)
  }
}

/** Notes what else must be ended with the run; the latest goes first. */
export function atEnd(close: () => Promise<unknown>): void {
  closers.unshift(close)
}

/** Ends everything that was started so far. */
export async function endAll(): Promise<void> {
  await Promise.all([...running].map((program) => program.stop()))
  for (const close of closers.splice(0)) await close()
}

/** The same without a word of goodbye, for Ctrl-C. */
export async function killAll(): Promise<void> {
  for (const program of running) program.kill()
  await endAll()
}

/** What goes before a command so that it keeps to its processors. */
export function pinning(on: keyof typeof CORES | undefined): string[] {
  return mayPin && on !== undefined ? ['taskset', '--cpu-list', CORES[on]] : []
}

/** The fields of /proc/<pid>/stat after the command's name, which may hold spaces (proc(5): state is the first). */
function statFields(pid: number): string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** A file of /proc; empty when its process or thread has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

/** From schedstat and not stat, which counts in hundredths of a second: too coarse for short rounds. */
function threadNanos(pid: number): number {
  const task = `/proc/${pid}/task`
  const threads = existsSync(task) ? readdirSync(task) : []
  return threads.reduce(
    (sum, thread) => sum + Number(read(`${task}/${thread}/schedstat`).split(' ', 1)[0]),
    0,
  )
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
    // It has ended.
  }
}
