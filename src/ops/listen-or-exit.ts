import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { EXIT, exitAfterFlush } from './exit.ts'

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
