import { constants } from 'node:os'
import { IS_UNDER_NPM } from '../config/npm.ts'
import { flushBoundedLines } from '../telemetry/bounded-lines.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { surviveRejections } from '../telemetry/unhandled-rejections.ts'
import { EXIT, exitAfterFlush } from './exit.ts'
import { handleSignals } from './signals.ts'

interface ShutdownDependencies {
  readonly serverLog: ServerLog
  /** Time limit from the first signal to the exit. */
  readonly drainMs: number
  /**
   * Ends everything that runs. After a crash the state of the process is unknown, so it should not accept work that
   * another process can do.
   */
  close(isCrash: boolean): Promise<void>
  /** Called when no time is left. The process exits as soon as this returns and the log is written. */
  abandon?(): void
  /** An exit code in place of 0, if anything went wrong on the way. Not asked after a second signal, which cuts off the rest anyway. */
  exitCode?(): number | undefined
  /** For a worker: its supervisor handles signals and notifies it. A Ctrl-C reaches the worker as well. */
  readonly ignoresSignals?: boolean
}

/** Where npm passes signals on, the one that came first counts once within this time. */
const PASSED_ON_MS = 2000

/** Closes, then exits, within the time limit. Only the first call has an effect. */
type Shutdown = (reason: object, exitCode?: number) => void

/**
 * Installs the handlers that end the process. On SIGTERM, SIGINT or SIGHUP it closes and exits with 0, at the latest at
 * the time limit; a second signal, unless npm has passed on the first, ends it at once, with 128 + its number, as a shell would
 * report. After an uncaught exception it does the same with exit code 1, and another one meanwhile ends it at once. See
 * {@link surviveRejections} for rejections.
 */
export function installShutdown(deps: ShutdownDependencies): Shutdown {
  const { serverLog, drainMs } = deps
  const { log } = serverLog
  let isClosing = false
  const exit = (code: number): void => {
    deps.abandon?.()
    flushBoundedLines(log)
    void exitAfterFlush(serverLog, code === 0 ? (deps.exitCode?.() ?? 0) : code)
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
        log.error({ err: error }, 'shutdown failed')
        exit(EXIT.crash)
      },
    )
  }

  let first: { signal: string; at: number } | undefined
  handleSignals((signal) => {
    if (deps.ignoresSignals === true) return
    if (!isClosing) {
      first = { signal, at: performance.now() }
      return shutdown({ signal })
    }
    if (IS_UNDER_NPM && signal === first?.signal && performance.now() < first.at + PASSED_ON_MS) return
    log.warn({ signal }, 'exiting now')
    exit(128 + constants.signals[signal])
  })
  process.on('uncaughtException', (error: unknown) => {
    log.fatal({ err: error instanceof Error ? error : new Error(String(error)) }, 'an unexpected error')
    if (isClosing) exit(EXIT.crash)
    shutdown({ reason: 'crash' }, EXIT.crash)
  })
  surviveRejections(log)
  return shutdown
}
