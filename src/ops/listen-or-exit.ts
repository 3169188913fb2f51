import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { EXIT } from './exit-codes.ts'

/** Listens, or ends the process with a word about it. */
export async function listenOrExit(
  server: FastifyInstance,
  address: { readonly host: string; readonly port: number },
  log: FastifyBaseLogger,
): Promise<void> {
  try {
    await server.listen(address)
  } catch (error) {
    log.fatal({ err: error }, 'cannot listen')
    process.stderr.write(
      `Cannot listen on ${address.host}, port ${address.port}: ${(error as Error).message}\n`,
    )
    process.exit(EXIT.cannotListen)
  }
}
