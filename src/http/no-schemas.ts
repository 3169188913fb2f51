import type { FastifyServerOptions } from 'fastify'

const refuse = (): never => {
  throw new Error('routes have no schemas here: what comes is checked by hand, bodies pass unread')
}

/** Keeps Fastify from loading the two schema compilers that it would otherwise load at every start. */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
