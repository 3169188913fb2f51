import type { FastifyRequest } from 'fastify'

/** Who asked for something, as the lines of the log name it. */
export interface Requester {
  readonly reqId: string
  /** The client's address. */
  readonly client: string
}

/** Who a request comes from. */
export function requesterOf({ id, ip }: FastifyRequest): Requester {
  return { reqId: id, client: ip }
}
