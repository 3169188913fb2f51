import cluster, { type Worker } from 'node:cluster'
import { AggregatorRegistry, type MetricObject, type Registry } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { SecretFiles } from '../config/secret-files.ts'
import { workerEnvironment, workerSecrets } from '../config/worker-environment.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { createSupervisorMetrics } from '../telemetry/metrics.ts'
import { addSecretMetrics } from '../telemetry/secret-metrics.ts'
import { backoffMs } from '../time/backoff.ts'
import { delegate } from './delegate.ts'
import { EXIT, exitAfterFlush, FINAL_CODES } from './exit.ts'
import type { OpsPort, OpsSource } from './ops-listener.ts'
import type { RunCommand } from './operator-commands.ts'
import { installShutdown } from './shutdown.ts'
import { SIGNALS } from './signals.ts'
import { ask, tell } from './worker-channel.ts'

/** The delays before a dead worker is replaced. */
const RESTARTS = { firstMs: 200, longestMs: 30_000 }
/** A worker that lived for this long did not die because of its start, so the delay starts over. */
const STEADY_MS = 60_000
/** Timeout for warnings. They are part of the readiness, which must not wait for a worker that hangs. */
const WARNINGS_MS = 100

/** Runs the server in several worker processes. This process has the ops listener for all of them. */
export async function supervise(
  config: Config,
  serverLog: ServerLog,
  ops: OpsPort,
  files: SecretFiles | undefined,
): Promise<void> {
  const supervisor = new Supervisor(config, serverLog, files)
  installShutdown({
    serverLog,
    drainMs: config.drainMs,
    close: () => supervisor.stop(),
    abandon: () => supervisor.kill(),
    exitCode: () => (supervisor.hasLostLines ? EXIT.logLost : undefined),
  })
  await ops.report(supervisor)
  supervisor.start()
}

/** Keeps several workers running, which share the public port, and reports about all of them. */
class Supervisor implements OpsSource {
  /** The secrets in it may change. */
  readonly #config: Config
  readonly #log: ServerLog['log']
  readonly #serverLog: ServerLog
  /** Absent where no secret is in a file. */
  readonly #files: SecretFiles | undefined
  readonly #metrics: ReturnType<typeof createSupervisorMetrics>
  /** The latest metrics of each running worker, without the gauges of one that does not reply. */
  readonly #counted = new Map<Worker, readonly MetricObject[]>()
  /** The sums over all dead workers. */
  #countedByDead: readonly MetricObject[] = []
  readonly #workers = new Set<Worker>()
  #isStopping = false
  /** Whether a worker could not write the last lines of its log, or had to be killed, so that nobody knows. */
  hasLostLines = false
  #stopped: (() => void) | undefined

  constructor(config: Config, serverLog: ServerLog, files: SecretFiles | undefined) {
    this.#config = config
    this.#serverLog = serverLog
    this.#log = serverLog.log
    this.#files = files
    this.#metrics = createSupervisorMetrics(serverLog.lines)
    if (files !== undefined) this.#shareSecrets(config, files)
  }

  /** The workers get new secrets from this process, which itself uses the token of the operators alone. */
  #shareSecrets(config: Config, files: SecretFiles): void {
    addSecretMetrics(this.#metrics.registry, {
      config,
      names: config.ops.token === undefined ? [] : ['OPS_TOKEN'],
      fingerprintKey: () => this.#fingerprintKey(),
      files: () => files.states,
    })
    files.onTaken(() => this.#sendSecrets(this.#workers))
  }

  #sendSecrets(workers: Iterable<Worker>): void {
    for (const worker of workers) tell(worker, { secrets: workerSecrets(this.#config) })
  }

  start(): void {
    for (let started = 0; started < this.#config.workers; started++) this.#fork(0)
  }

  /** Empty if at least one worker is ready. */
  async reasons(): Promise<string[]> {
    if (this.#isStopping) return ['draining']
    const replies = [...this.#workers].map((worker) => ask(worker, 'reasons'))
    const isReady = async (reply: (typeof replies)[number]): Promise<void> => {
      if ((await reply)?.length !== 0) throw new Error('not ready')
    }
    try {
      // One ready worker is enough: another may hang, and a probe times out soon.
      await Promise.any(replies.map(isReady))
      return []
    } catch {
      const reasons = (await Promise.all(replies)).flatMap((each) => each ?? ['a worker does not answer'])
      return reasons.length === 0 ? ['no worker runs'] : [...new Set(reasons)]
    }
  }

  /** The warnings of this process, and of all workers that reply in time. */
  async warnings(): Promise<string[]> {
    const replies = await Promise.all(
      [...this.#workers].map((worker) => ask(worker, 'warnings', { timeoutMs: WARNINGS_MS })),
    )
    return [...new Set([...(this.#files?.warnings ?? []), ...replies.flatMap((each) => each ?? [])])]
  }

  /** The sums over all workers, including dead ones, since counters must not decrease. */
  async registry(): Promise<Registry> {
    let silent = 0
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const metrics = await ask(worker, 'metrics')
        if (!this.#workers.has(worker)) return
        if (metrics === undefined) silent++
        // The gauges of a worker that does not reply may be wrong by now.
        this.#counted.set(worker, metrics ?? countsIn(this.#counted.get(worker) ?? []))
      }),
    )
    this.#metrics.workers.set(this.#workers.size)
    this.#metrics.silentWorkers.set(silent)
    const own = await this.#metrics.registry.getMetricsAsJSON()
    // The supervisor's own metrics come first: the first metric of a name decides how all of that name are combined.
    return sum([own, ...this.#counted.values(), this.#countedByDead])
  }

  /** Has a worker do what an operator asks. */
  readonly runCommand: RunCommand = (command, isWanted) =>
    delegate([...this.#workers], command, {
      isWanted,
      isResponsive: async (worker) => (await ask(worker, 'reasons')) !== undefined,
      runCommand: (worker, next, timeoutMs) => ask(worker, 'command', { timeoutMs, command: next }),
    })

  /** Asks all workers to shut down. Resolves when none is left. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#files?.close()
    for (const worker of this.#workers) {
      // This ends a worker that is still starting. One that has started ignores the signal.
      worker.process.kill('SIGTERM')
      tell(worker, { drain: true })
    }
    if (this.#workers.size > 0) await new Promise<void>((resolve) => (this.#stopped = resolve))
  }

  kill(): void {
    this.#isStopping = true
    this.hasLostLines ||= this.#workers.size > 0
    for (const worker of this.#workers) worker.process.kill('SIGKILL')
    this.#workers.clear()
  }

  /** @param deaths how many predecessors of this worker died soon after their start */
  #fork(deaths: number): void {
    if (this.#isStopping) return
    const bornAt = performance.now()
    let worker: Worker
    try {
      worker = cluster.fork(workerEnvironment(this.#config))
    } catch (error) {
      // There is too little memory, for instance. The workers that serve go on.
      const restartMs = this.#forkLater(deaths)
      return this.#log.error({ err: error, restartMs }, 'a worker could not be started')
    }
    this.#workers.add(worker)
    worker.once('listening', () => {
      // What was sent while it started was lost. The signal that was to end it may have come a moment too late for that.
      if (this.#isStopping) tell(worker, { drain: true })
      else if (this.#files !== undefined) this.#sendSecrets([worker])
    })
    this.#log.info({ worker: worker.id, pid: worker.process.pid }, 'a worker starts')
    const handleDeath = (code: number | null, signal: string | null): void => {
      if (!this.#workers.delete(worker)) return
      void this.#keepCounts(worker)
      const died = { worker: worker.id, code, signal }
      if (this.#isStopping) {
        // A signal that stops the server may end a worker that is still starting. Any other has cut off one that drained.
        const isKilled = signal !== null && !SIGNALS.some((each) => each === signal)
        if (isKilled) this.#log.error(died, 'a worker died')
        this.hasLostLines ||= isKilled || code === EXIT.logLost
        if (this.#workers.size === 0) this.#stopped?.()
        return
      }
      // The failure of a replacement is no reason to end the workers that serve.
      if (code !== null && FINAL_CODES.has(code) && deaths === 0) {
        this.#log.fatal(died, 'a worker cannot start')
        this.kill()
        void exitAfterFlush(this.#serverLog, code)
        return
      }
      const tries = performance.now() - bornAt >= STEADY_MS ? 0 : deaths
      this.#log.error({ ...died, restartMs: this.#forkLater(tries) }, 'a worker died')
    }
    worker.once('exit', handleDeath)
    worker.on('error', (error) => {
      this.#log.error({ err: error, worker: worker.id }, 'a worker failed')
      // A process that never started emits no exit event.
      if (worker.process.pid === undefined) handleDeath(null, null)
    })
  }

  /** Starts a worker in place of one that has died, or was never there. @returns after how many milliseconds */
  #forkLater(deaths: number): number {
    const restartMs = backoffMs(deaths, RESTARTS)
    this.#metrics.workerRestarts.inc()
    setTimeout(() => this.#fork(deaths + 1), restartMs)
    return restartMs
  }

  /** A worker asks the store for it. Undefined if no worker has it in time. */
  async #fingerprintKey(): Promise<string | undefined> {
    const replies = [...this.#workers].map(async (worker) => {
      const key = await ask(worker, 'fingerprintKey')
      return key ?? Promise.reject(new Error('no key'))
    })
    return Promise.any(replies).catch(() => undefined)
  }

  async #keepCounts(worker: Worker): Promise<void> {
    const last = this.#counted.get(worker)
    if (last === undefined) return
    this.#counted.delete(worker)
    this.#countedByDead = await sum([this.#countedByDead, countsIn(last)]).getMetricsAsJSON()
  }
}

/** The metrics that only grow. */
function countsIn(metrics: readonly MetricObject[]): readonly MetricObject[] {
  return metrics.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram')
}

function sum(metrics: readonly (readonly MetricObject[])[]): Registry {
  return AggregatorRegistry.aggregate(metrics as unknown as object[])
}
