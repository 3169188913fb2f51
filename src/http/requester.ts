import type { FastifyRequest } from 'fastify'

/** The request that caused an event and the address of its client, as log lines name them. */
export type Requester = ReturnType<typeof requesterOf>

/** The requester behind a request. */
export function requesterOf({ id, ip }: FastifyRequest) {
  return { reqId: id, client: ip }
}

/** Who made a request, as audit lines name them. */
export function callerOf({ sessionTag, ip }: FastifyRequest) {
  return { session: sessionTag, client: ip }
}
