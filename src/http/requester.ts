import type { FastifyRequest } from 'fastify'

/** The request and the client that caused an event, as log lines name them. */
export interface Requester {
  readonly reqId: string
  /** The client's address. */
  readonly client: string
}

/** The requester behind a request. */
export function requesterOf({ id, ip }: FastifyRequest): Requester {
  return { reqId: id, client: ip }
}
