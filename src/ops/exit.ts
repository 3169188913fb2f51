import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

/** Exit codes after a failure, so that an operator or process manager can tell them apart (sysexits.h). */
export const EXIT = {
  /** An uncaught exception. */
  crash: 1,
  /** EX_USAGE: unknown arguments. */
  usage: 64,
  /** EX_UNAVAILABLE: `--check` found a service that does not work, or `--sessions` found no server that does. */
  unavailable: 69,
  /** EX_OSERR: a port could not be opened. */
  cannotListen: 71,
  /** EX_CONFIG: wrong or missing settings. */
  config: 78,
} as const

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

/** Listens. If that fails, logs and prints why and ends the process; the promise then never settles. */
export async function listenOrExit(
  server: FastifyInstance,
  address: { readonly host: string; readonly port: number },
  log: Logger,
): Promise<void> {
  try {
    await server.listen(address)
  } catch (error) {
    log.fatal({ err: error }, 'cannot listen')
    process.stderr.write(`Cannot listen on ${address.host}, port ${address.port}: ${(error as Error).message}\n`)
    exitAfterFlush(log, EXIT.cannotListen)
    await new Promise(() => undefined)
  }
}
