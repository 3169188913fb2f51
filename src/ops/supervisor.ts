import cluster, { type Worker } from 'node:cluster'
import type { FastifyBaseLogger } from 'fastify'
import { AggregatorRegistry, type MetricObject, type Registry } from 'prom-client'
import { createSupervisorMetrics } from '../telemetry/metrics.ts'
import { EXIT } from './exit-codes.ts'
import type { OpsSource } from './ops-listener.ts'
import { ask, requestDrain } from './worker-channel.ts'

/** A dead worker is replaced after this long, twice as long after each further death, and so on to the longest. */
const FIRST_RESTART_MS = 200
const LONGEST_RESTART_MS = 30_000
/** One that lived for this long did not die of its start. */
const STEADY_MS = 60_000
/** Warnings come with the readiness, which must not wait for a worker that hangs. */
const WARNINGS_MS = 100
/** Another start would end in the same way. */
const FINAL_CODES: ReadonlySet<number> = new Set([EXIT.config, EXIT.cannotListen])

/** What a supervisor is given. */
export interface SupervisorDependencies {
  readonly count: number
  /** What the workers' environment has beside this process's own. */
  readonly environment: Record<string, string>
  readonly log: FastifyBaseLogger
  /** How many lines of this process's log were lost so far. */
  readonly droppedLines: () => number
  /** A worker ended in a way that another would end in too. */
  readonly giveUp: (exitCode: number) => void
}

/** Keeps several processes of the server running, which share its port, and speaks for all of them. */
export class Supervisor implements OpsSource {
  readonly #deps: SupervisorDependencies
  readonly #metrics = createSupervisorMetrics()
  /** The last metrics of each worker that runs, and the sums of what the dead ones had counted. */
  readonly #counted = new Map<Worker, readonly MetricObject[]>()
  #countedByTheDead: readonly MetricObject[] = []
  readonly #workers = new Set<Worker>()
  #isStopping = false
  #stopped: (() => void) | undefined

  constructor(deps: SupervisorDependencies) {
    this.#deps = deps
    this.#metrics.logLines.dropped = deps.droppedLines
  }

  start(): void {
    for (let started = 0; started < this.#deps.count; started++) this.#fork(0)
  }

  /** Ready when a worker is. */
  async reasons(): Promise<string[]> {
    if (this.#isStopping) return ['draining']
    const answers = [...this.#workers].map((worker) => ask(worker, 'reasons'))
    const isReady = async (answer: (typeof answers)[number]): Promise<void> => {
      if ((await answer)?.length !== 0) throw new Error('not ready')
    }
    try {
      // The first that is will do: another may hang, and a probe has little patience.
      await Promise.any(answers.map(isReady))
      return []
    } catch {
      const reasons = (await Promise.all(answers)).flatMap((each) => each ?? ['a worker does not answer'])
      return reasons.length === 0 ? ['no worker runs'] : [...new Set(reasons)]
    }
  }

  /** What any worker warns of; one that does not answer warns of nothing. */
  async warnings(): Promise<string[]> {
    const answers = await Promise.all(
      [...this.#workers].map((worker) => ask(worker, 'warnings', WARNINGS_MS)),
    )
    return [...new Set(answers.flatMap((each) => each ?? []))]
  }

  /** The sums over all workers, the dead ones too: what was counted once is not taken back. */
  async registry(): Promise<Registry> {
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const metrics = await ask(worker, 'metrics')
        if (metrics !== undefined && this.#workers.has(worker)) this.#counted.set(worker, metrics)
      }),
    )
    this.#metrics.workers.set(this.#workers.size)
    const own = await this.#metrics.registry.getMetricsAsJSON()
    return sum([...this.#counted.values(), this.#countedByTheDead, own])
  }

  /** Tells all workers to go down in order. Resolves when none is left. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const worker of this.#workers) requestDrain(worker)
    if (this.#workers.size > 0) await new Promise<void>((resolve) => (this.#stopped = resolve))
  }

  kill(): void {
    this.#isStopping = true
    for (const worker of this.#workers) worker.process.kill('SIGKILL')
  }

  /** @param deaths how many ended right after their start before this one */
  #fork(deaths: number): void {
    if (this.#isStopping) return
    const bornAt = performance.now()
    const worker = cluster.fork(this.#deps.environment)
    this.#workers.add(worker)
    this.#deps.log.info({ worker: worker.id, pid: worker.process.pid }, 'a worker starts')
    const bury = (code: number | null, signal: string | null): void => {
      if (!this.#workers.delete(worker)) return
      void this.#keepCounts(worker)
      if (this.#isStopping) {
        if (this.#workers.size === 0) this.#stopped?.()
        return
      }
      const died = { worker: worker.id, code, signal }
      // Of a replacement it is no reason to end those that serve.
      if (code !== null && FINAL_CODES.has(code) && deaths === 0) {
        this.#deps.log.fatal(died, 'a worker cannot start')
        this.#deps.giveUp(code)
        return
      }
      const tries = performance.now() - bornAt >= STEADY_MS ? 0 : deaths
      const restartMs = Math.min(FIRST_RESTART_MS * 2 ** tries, LONGEST_RESTART_MS)
      this.#deps.log.error({ ...died, restartMs }, 'a worker died')
      this.#metrics.workerRestarts.inc()
      setTimeout(() => this.#fork(tries + 1), restartMs)
    }
    worker.once('exit', bury)
    worker.on('error', (error) => {
      this.#deps.log.error({ err: error, worker: worker.id }, 'a worker failed')
      // It never ran: there will be no exit.
      if (worker.process.pid === undefined) bury(null, null)
    })
  }

  async #keepCounts(worker: Worker): Promise<void> {
    const last = this.#counted.get(worker)
    if (last === undefined) return
    this.#counted.delete(worker)
    const counts = last.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram')
    this.#countedByTheDead = await sum([this.#countedByTheDead, counts]).getMetricsAsJSON()
  }
}

function sum(metrics: readonly (readonly MetricObject[])[]): Registry {
  return AggregatorRegistry.aggregate(metrics as unknown as object[])
}
