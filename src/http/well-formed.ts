import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'
import { isHttp1, WRONG_VERSION } from './listener.ts'
import { isRepeated } from './repeated-header.ts'

/** Origin form (RFC 9112 §3.2.1) in printable ASCII. No fragment, and no backslash in the path: some parsers read it as `/`. */
const TARGET = /^\/[\x21\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*(?:\?[\x21\x22\x24-\x7e]*)?$/
/** A name or an address, with an optional port (RFC 9110 §7.2). */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/

/** The usual sender is a balancer's simple health check. */
const NO_HOST =
  'Send HTTP/1.1 and a Host header. A health check belongs to the port for operations: GET /readyz or /livez.'

/** Connections that sent a malformed request. No request that Node parses on them afterwards can be trusted. */
const distrusted = new WeakSet<Socket>()

/**
 * Refuses requests that Node accepts and other parsers read differently, and closes the connection, since its further
 * requests cannot be trusted either.
 * @throws Problem bad_request, not_found, upgrade_required
 */
export function requireWellFormed(request: FastifyRequest, reply: FastifyReply): void {
  const { url = '', headers, socket, httpVersion } = request.raw
  if (!isHttp1(request.raw)) {
    distrusted.add(socket)
    reply.header('connection', 'close')
    throw new Problem('bad_request', { status: WRONG_VERSION, detail: 'The version of HTTP must be 1.1 or 1.0.' })
  }
  if (headers.host === undefined && httpVersion === '1.0') {
    distrusted.add(socket)
    reply.header('connection', 'upgrade, close')
    throw new Problem('upgrade_required', { detail: NO_HOST, headers: { upgrade: 'HTTP/1.1' } })
  }
  const fault = faultOf(request.raw)
  if (fault !== undefined) {
    distrusted.add(socket)
    reply.header('connection', 'close')
    throw new Problem('bad_request', { detail: fault })
  }
  // What follows an upgrade may be another protocol, which is not to be read as requests.
  if (headers.upgrade !== undefined) {
    distrusted.add(socket)
    reply.header('connection', 'close')
  }
  // No route needs an escape. With one, a request could slip past a proxy in front that filters by path.
  if (url.includes('%') && hasEscapedPath(url) && !isFile(request)) throw new Problem('not_found')
}

/** Whether a body follows the headers of a request. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function faultOf({ url = '', headers, rawHeaders, socket }: IncomingMessage): string | undefined {
  if (!TARGET.test(url)) return 'The request target is malformed.'
  if (!HOST.test(headers.host ?? '') || isRepeated(rawHeaders, 'host')) {
    return 'Exactly one valid Host header is required.'
  }
  const encoding = headers['transfer-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
    return 'The only transfer coding understood here is chunked.'
  }
  return distrusted.has(socket) ? 'An earlier request of this connection was malformed.' : undefined
}

function hasEscapedPath(url: string): boolean {
  const query = url.indexOf('?')
  return url.lastIndexOf('%', query === -1 ? url.length : query) !== -1
}

/** Whether the wildcard route of the static files, or none, matches: a file may have any name. */
function isFile(request: FastifyRequest): boolean {
  const { url } = request.routeOptions
  return url === undefined || url.startsWith('/*')
}
