import type { Logger } from 'pino'

/** A reader of the log who has not taken what waits by then does not read any more. */
const LOG_MS = 2000

/**
 * Ends the process as soon as its log is written. Where nobody reads it, and a write hangs, the process would wait for
 * that write for ever on its way out, deaf to signals: then it is killed, by itself.
 */
export function exitAfterFlush(log: Pick<Logger, 'flush'>, code: number): void {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LOG_MS)
  log.flush(() => process.exit(code))
}
