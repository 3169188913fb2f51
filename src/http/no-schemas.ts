import type { FastifyServerOptions } from 'fastify'

const refuse = (): never => {
  throw new Error('routes have no schemas here: each route checks its input itself')
}

/** Keeps Fastify from loading its two schema compilers at every start. */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
