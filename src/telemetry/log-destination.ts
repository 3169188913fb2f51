import type { FastifyBaseLogger } from 'fastify'
import { symbols } from 'pino'

/** Where the lines of a logger go: the same object for a logger and its children. */
export function destinationOf(log: FastifyBaseLogger): object {
  return (log as FastifyBaseLogger & { readonly [symbols.streamSym]?: object })[symbols.streamSym] ?? log
}
