import type { FastifyRequest } from 'fastify'
import { network } from '../limits/networks.ts'

/** Longer than any address with its zone. */
const MAX_ADDRESS = 64

/** The request that caused an event and the address of its client, as log lines name them. */
export type Requester = ReturnType<typeof requesterOf>

/** The requester behind a request. */
export function requesterOf({ id, ip }: FastifyRequest) {
  return { reqId: id, client: loggedAddress(ip) }
}

/** Who made a request, as audit lines name them. */
export function callerOf({ sessionTag, subjectTag, ip }: FastifyRequest) {
  return { session: sessionTag, subject: subjectTag, client: loggedAddress(ip) }
}

/** The same for an event that may concern the trading account which the path names. */
export function callerOnAccount(request: FastifyRequest) {
  return { ...callerOf(request), account: request.accountTag }
}

/** The address of a client for the log: empty if it left at once, and cut if a proxy passed on something endless instead. */
export function loggedAddress(address: string | undefined): string {
  return address?.slice(0, MAX_ADDRESS) ?? ''
}

/** Whose events are counted together: those of a session, or those of a network that one client controls. */
export function sourceOf({ sessionTag, ip }: FastifyRequest): string {
  return sessionTag === '' ? network(ip) : sessionTag
}
