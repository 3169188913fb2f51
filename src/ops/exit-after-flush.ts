import type { Logger } from 'pino'

/** If the log is not written by then, nothing reads it. */
const LOG_TIMEOUT_MS = 2000

/**
 * Ends the process as soon as its log is written. If nothing reads the log, a write may hang, and `process.exit` would
 * wait for it forever and ignore signals. The process then kills itself.
 */
export function exitAfterFlush(log: Pick<Logger, 'flush'>, code: number): void {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LOG_TIMEOUT_MS)
  log.flush(() => process.exit(code))
}
