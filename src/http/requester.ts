import type { FastifyRequest } from 'fastify'
import type { Changing } from '../config/changing.ts'
import { logTag } from '../telemetry/log.ts'
import { ID } from './known-paths.ts'
import { network } from '../limits/networks.ts'

/** Longer than any address with its zone. */
const MAX_ADDRESS = 64

/** The methods that metrics distinguish. Node accepts some thirty, so the others share a label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The method of a request for metrics and audit lines; `other` for a rare one. */
export function methodLabel(method: string): string {
  return METHODS.has(method) ? method : 'other'
}

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

/** Who made a request, for an event that may concern the trading account which the path names. */
export function callerOnAccount(request: FastifyRequest) {
  return { ...callerOf(request), account: request.accountTag?.() }
}

/**
 * Notes for the log which trading account the path of a request names, if it can be one.
 * @param secrets the first one keys the name
 */
export function noteAccount(request: FastifyRequest, parameter: string, secrets: Changing<readonly string[]>): void {
  const { [parameter]: id = '' } = request.params as Record<string, string>
  const [secret = ''] = secrets.current
  // Most requests write no line that names it.
  if (ID.test(id)) request.accountTag = () => logTag(secret, `account:${id}`)
}

/** The address of a client for the log: empty if it left at once, and cut if a proxy passed on something endless instead. */
export function loggedAddress(address: string | undefined): string {
  return address?.slice(0, MAX_ADDRESS) ?? ''
}

/** The source under which events are counted together: a session, or a network that one client controls. */
export function sourceOf({ sessionTag, ip }: FastifyRequest): string {
  return sessionTag === '' ? network(ip) : sessionTag
}
