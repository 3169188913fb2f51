import type { OutgoingHttpHeader } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Guard } from './guard.ts'
import { isPathOf } from './known-paths.ts'

const HSTS = 'max-age=31536000'
/** Paths whose responses a page of a listed origin may read, errors included (docs/reference.md, Who may call). */
const CORS_PATHS = ['/api', '/auth/session', '/auth/sessions', '/auth/logout'] as const

declare module 'fastify' {
  interface FastifyReply {
    /** The headers of every response, as a flat list of names and values. A header that a route sets counts instead. */
    baseHeaders: readonly string[]
  }
}

/**
 * Makes the function that prepares the headers of every response. They depend only on the settings, the path and the Origin.
 * Those in `reply.baseHeaders` are added when the response is sent. A proxied response is written past Fastify, whose own way of
 * keeping headers is slower.
 */
export function baseHeaders(config: Config['http'], guard: Guard) {
  const hsts = config.hsts ? ['strict-transport-security', HSTS] : []
  const fixed = ['x-content-type-options', 'nosniff', ...hsts]
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const { origin } = request.headers
    const url = request.raw.url ?? ''
    const isListed = guard.isListed(origin)
    const isOtherOrigin = isListed && origin !== config.publicUrl
    const policy = isOtherOrigin ? 'same-site' : 'same-origin'
    reply.baseHeaders = ['x-request-id', request.id, ...fixed, 'cross-origin-resource-policy', policy]
    // Not in the list, because others add to it: an encoded file varies by Accept-Encoding, too.
    reply.header('vary', 'Origin')
    if (isPathOf(url, '/auth')) {
      reply.header('cache-control', 'no-store')
      reply.header('referrer-policy', 'no-referrer')
    }
    if (isListed && CORS_PATHS.some((path) => isPathOf(url, path))) guard.allowReading(request, reply)
  }
}

/** Adds the headers of every response to one that Fastify sends. */
export function addBaseHeaders(reply: FastifyReply): void {
  const { baseHeaders: list } = reply
  for (let index = 0; index < list.length; index += 2) {
    const name = list[index] as string
    if (!reply.hasHeader(name)) reply.header(name, list[index + 1])
  }
}

/** The server's own headers of a response that is written past Fastify, as a flat list of names and values. */
export function ownHeaders(reply: FastifyReply): OutgoingHttpHeader[] {
  const list: OutgoingHttpHeader[] = [...reply.baseHeaders]
  const added = reply.getHeaders()
  for (const name in added) list.push(name, added[name] as OutgoingHttpHeader)
  return list
}

/** The headers of every response, for one that is written by hand because there is no parsed request. */
export function rawBaseHeaders(config: Config['http'], requestId: string): string[] {
  return [
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cross-Origin-Resource-Policy: same-origin',
    ...(config.hsts ? [`Strict-Transport-Security: ${HSTS}`] : []),
  ]
}
