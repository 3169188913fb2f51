import type { IncomingMessage } from 'node:http'
import type { FastifyServerOptions } from 'fastify'

/** HTTP Version Not Supported (RFC 9110 §15.6.6). */
export const WRONG_VERSION = 505

/** Whether a request line names HTTP/1.1 or HTTP/1.0. Node also hands over lines with HTTP/2.0, HTTP/0.9 or no version. */
export function isHttp1({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}

const refuse = (): never => {
  throw new Error('routes have no schemas here: each route checks its input itself')
}

/** Keeps Fastify from loading its two schema compilers at every start. */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
