import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'

/** A nonce of 16 bytes (RFC 6455 §4.1). */
const KEY = /^[+/0-9A-Za-z]{22}==$/

/** A token (RFC 9110 §5.6.2) with optional whitespace around it. */
const SUBPROTOCOL = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)[ \t]*$/

/** Refuses what ws would refuse in the end, before it costs a permit or a one-time URL. @throws Problem */
export function requireWebSocket({ ws, headers }: FastifyRequest, reply: FastifyReply): void {
  if (!ws || headers.upgrade?.toLowerCase() !== 'websocket') {
    reply.headers({ upgrade: 'websocket', connection: 'upgrade, close' })
    throw new Problem('upgrade_required')
  }
  if (headers['sec-websocket-version'] !== '13') {
    reply.header('sec-websocket-version', '13')
    throw new Problem('upgrade_required', { detail: 'Only version 13 of the WebSocket protocol is supported here.' })
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) throw new Problem('bad_request')
  const { 'sec-websocket-protocol': protocols } = headers
  if (protocols !== undefined && !areSubprotocols(protocols)) {
    throw new Problem('bad_request', { detail: 'Sec-WebSocket-Protocol is malformed.' })
  }
}

/** Distinct names of subprotocols (RFC 6455 §4.1). */
function areSubprotocols(list: string): boolean {
  const names = list.split(',').map((element) => SUBPROTOCOL.exec(element)?.[1])
  return !names.includes(undefined) && new Set(names).size === names.length
}
