import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { isPathOf } from './known-paths.ts'

/**
 * Serves the files of STATIC_DIR where no other route answers. Returns whether a request that found nothing should
 * get index.html instead: only a navigation, as a page of the frontend's own routing would be.
 */
export async function registerStaticPages(
  fastify: FastifyInstance,
  config: Config['http'],
): Promise<(request: FastifyRequest) => boolean> {
  if (config.staticDir === undefined) return () => false
  const { default: fastifyStatic } = await import('@fastify/static')
  const root = resolve(config.staticDir)
  const hasIndex = existsSync(join(root, 'index.html'))
  await fastify.register(fastifyStatic, {
    root,
    dotfiles: 'ignore',
    cacheControl: false,
    allowedPath: (path) => !isReserved(path),
    setHeaders: (reply) => {
      reply.header('content-security-policy', config.staticCsp)
      reply.header('referrer-policy', 'strict-origin-when-cross-origin')
      reply.header('cache-control', 'no-cache')
    },
  })
  return (request) => hasIndex && isNavigation(request) && !isReserved(request.raw.url ?? '/')
}

function isReserved(path: string): boolean {
  return ['/api', '/auth', '/ws'].some((prefix) => isPathOf(path, prefix))
}

function isNavigation(request: FastifyRequest): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false
  const { 'sec-fetch-mode': mode, accept = '' } = request.headers
  return mode === undefined ? accept.includes('text/html') : mode === 'navigate'
}
