import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Guard } from './guard.ts'
import { isPathOf } from './known-paths.ts'

const HSTS = 'max-age=31536000'
/** Paths whose responses a page of a listed origin may read, errors included (docs/reference.md, Who may call). */
const CORS_PATHS = ['/api', '/auth/session', '/auth/sessions', '/auth/logout'] as const

/** Makes the function that adds the headers of every response. They depend only on the settings, the path and the Origin. */
export function baseHeaders(config: Config['http'], guard: Guard) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const { origin } = request.headers
    const url = request.raw.url ?? ''
    const isListed = guard.isListed(origin)
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    reply.header('vary', 'Origin')
    const isOtherOrigin = isListed && origin !== config.publicUrl
    reply.header('cross-origin-resource-policy', isOtherOrigin ? 'same-site' : 'same-origin')
    if (config.hsts) reply.header('strict-transport-security', HSTS)
    if (isPathOf(url, '/auth')) {
      reply.header('cache-control', 'no-store')
      reply.header('referrer-policy', 'no-referrer')
    }
    if (isListed && CORS_PATHS.some((path) => isPathOf(url, path))) guard.allowReading(request, reply)
  }
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
