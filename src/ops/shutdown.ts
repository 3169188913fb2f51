import { constants } from 'node:os'
import type { Logger } from 'pino'
import { flushFailures } from '../telemetry/failure-log.ts'
import { EXIT } from './exit-codes.ts'
import { exitAfterFlush } from './exit-after-flush.ts'

/** How a process goes down. */
export interface ShutdownDependencies {
  readonly log: Logger
  /** From the first word of it to the exit, at most. */
  readonly drainMs: number
  /**
   * Ends what runs. After a crash nobody knows what state the process is in, so it should take no work that can go
   * elsewhere.
   */
  close(isCrash: boolean): Promise<void>
  /** Says that there is no time left: the process exits as soon as this returns and the log is written. */
  abandon?(): void
  /** Somebody else is told by signals, and tells this process: a worker, which gets Ctrl-C too. */
  readonly ignoresSignals?: boolean
}

/** Ends the process in order: closes, then exits, within the deadline. The first call counts. */
export type Shutdown = (reason: object, exitCode?: number) => void

/**
 * The ways a process ends. SIGTERM, SIGINT or SIGHUP: it closes and exits with 0, at the deadline at the latest; a second
 * one ends it now, with 128 + its number as a shell would report. An exception or rejection that nobody caught: the
 * same with 1, and another one meanwhile ends it now; it never goes on as if nothing had happened.
 */
export function installShutdown(deps: ShutdownDependencies): Shutdown {
  const { log, drainMs } = deps
  let isClosing = false
  const exit = (code: number): void => {
    deps.abandon?.()
    flushFailures(log)
    exitAfterFlush(log, code)
  }

  const shutdown = (reason: object, exitCode = 0): void => {
    if (isClosing) return
    isClosing = true
    log.info(reason, 'draining')
    setTimeout(() => {
      log.warn({ drainMs }, 'not everything ended in time')
      exit(exitCode)
    }, drainMs)
    deps.close(exitCode === EXIT.crash).then(
      () => exit(exitCode),
      (error: unknown) => {
        log.error({ err: error }, 'the shutdown failed')
        exit(EXIT.crash)
      },
    )
  }

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (deps.ignoresSignals === true) return
      if (!isClosing) return shutdown({ signal })
      log.warn({ signal }, 'ending now')
      exit(128 + constants.signals[signal])
    })
  }
  const crash = (error: unknown): void => {
    log.fatal({ err: error instanceof Error ? error : new Error(String(error)) }, 'an unexpected error')
    if (isClosing) exit(EXIT.crash)
    shutdown({ reason: 'crash' }, EXIT.crash)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
  return shutdown
}
