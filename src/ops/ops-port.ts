import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { listenOrExit } from './listen-or-exit.ts'
import { createOpsListener, type OpsSource } from './ops-listener.ts'

/**
 * The ops listener of a process. It stays open from the first report to the end, since a liveness probe that finds the
 * port closed for a moment may have the process killed.
 */
export class OpsPort {
  readonly #config: Pick<Config, 'listen' | 'ops'>
  readonly #log: Logger
  #source: OpsSource | undefined
  #listener: ReturnType<typeof createOpsListener> | undefined

  constructor(config: Pick<Config, 'listen' | 'ops'>, log: Logger) {
    this.#config = config
    this.#log = log
  }

  /** Answers from now on with what this source says. The first call opens the port; if it cannot, the process ends. */
  async report(source: OpsSource): Promise<void> {
    this.#source = source
    if (this.#listener !== undefined) return
    const { listen, ops } = this.#config
    this.#listener = createOpsListener(this.#latest(source), { token: ops.token, log: this.#log })
    await listenOrExit(this.#listener, { host: listen.opsHost, port: listen.opsPort }, this.#log)
  }

  async close(): Promise<void> {
    await this.#listener?.close()
  }

  /** Whatever source was the last to be reported. */
  #latest(first: OpsSource): OpsSource {
    const latest = (): OpsSource => this.#source ?? first
    return {
      reasons: () => latest().reasons(),
      warnings: () => latest().warnings(),
      registry: () => latest().registry(),
      carryOut: async (order) => (await latest().carryOut?.(order)) ?? { is: 'noWorker' },
    }
  }
}
