import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'

/** Origin form (RFC 9112 §3.2.1) of printable ASCII; no fragment, and no backslash in the path, which some read as `/`. */
const TARGET = /^\/[\x21\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*(?:\?[\x21\x22\x24-\x7e]*)?$/
/** A name or an address, and a port (RFC 9110 §7.2). */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/

/** Mostly a balancer's plain check. */
const NO_HOST =
  'Send HTTP/1.1 and a Host header. A health check belongs to the port for operations: GET /readyz or /livez.'

/** Connections that brought something malformed: what Node has read of them since is no request either. */
const distrusted = new WeakSet<Socket>()

/**
 * Refuses what Node takes for HTTP and others read differently, and hangs up: what follows on the connection cannot be
 * trusted either.
 * @throws Problem bad_request, not_found, upgrade_required
 */
export function requireWellFormed(request: FastifyRequest, reply: FastifyReply): void {
  const { url = '', headers, rawHeaders, socket, httpVersion } = request.raw
  if (headers.host === undefined && httpVersion === '1.0') {
    reply.header('connection', 'upgrade, close')
    throw new Problem('upgrade_required', { detail: NO_HOST, headers: { upgrade: 'HTTP/1.1' } })
  }
  const encoding = headers['transfer-encoding']
  const fault = !TARGET.test(url)
    ? 'The request target is malformed.'
    : !HOST.test(headers.host ?? '') || hasTwoHosts(rawHeaders)
      ? 'Exactly one valid Host header is required.'
      : encoding !== undefined && encoding.toLowerCase() !== 'chunked'
        ? 'The only transfer coding understood here is chunked.'
        : distrusted.has(socket)
          ? 'An earlier request of this connection was malformed.'
          : undefined
  if (fault !== undefined) {
    distrusted.add(socket)
    reply.header('connection', 'close')
    throw new Problem('bad_request', { detail: fault })
  }
  // No path of ours needs an escape; one that is spelled with them would pass whoever in front filters by path.
  if (url.includes('%') && hasEscapedPath(url) && !isFile(request)) throw new Problem('not_found')
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

function hasEscapedPath(url: string): boolean {
  const query = url.indexOf('?')
  return url.lastIndexOf('%', query === -1 ? url.length : query) !== -1
}

/** Files may be called anything. */
function isFile(request: FastifyRequest): boolean {
  const { url } = request.routeOptions
  return url === undefined || url.startsWith('/*')
}
