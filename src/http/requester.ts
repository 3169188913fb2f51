import type { FastifyRequest } from 'fastify'
import { network } from './client-address.ts'

/** The request that caused an event and the address of its client, as log lines name them. */
export type Requester = ReturnType<typeof requesterOf>

/** The requester behind a request. */
export function requesterOf({ id, ip }: FastifyRequest) {
  return { reqId: id, client: ip }
}

/** Who made a request, as audit lines name them. */
export function callerOf({ sessionTag, subjectTag, ip }: FastifyRequest) {
  return { session: sessionTag, subject: subjectTag, client: ip }
}

/** Whose events are counted together: those of a session, or those of a network that one client controls. */
export function sourceOf({ sessionTag, ip }: FastifyRequest): string {
  return sessionTag === '' ? network(ip) : sessionTag
}
