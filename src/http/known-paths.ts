import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'
import type { Guard } from './guard.ts'

/** Path prefixes that belong to this server and never to the frontend. */
export const RESERVED_PREFIXES = ['/api', '/auth', '/ws'] as const

/** The form of an id in a path (docs/reference.md, REST). */
export const ID = /^[A-Za-z0-9_-]{1,64}$/

/**
 * The paths that have routes, with their methods, so that a wrong method on one of them is a 405 and not a 404. OPTIONS
 * does not count as a method, because it serves only preflights.
 */
export class KnownPaths {
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
  /** Tells whether a path, without its query, is that of a file. Replaced by the owner of the files. */
  files: { isFile(path: string): boolean } = { isFile: () => false }
  readonly #guard: Guard

  constructor(server: FastifyInstance, guard: Guard) {
    this.#guard = guard
    server.addHook('onRoute', ({ url, method }) => {
      if (url.includes('*') || method === 'OPTIONS') return
      const path = this.#paths.get(url) ?? { pattern: toPattern(url), methods: new Set() }
      this.#paths.set(url, path)
      for (const each of [method].flat()) path.methods.add(each)
    })
    // Before the body is parsed. Otherwise a bad body would hide the wrong path or method.
    server.addHook('onRequest', (request, _reply, done) => {
      const isSafe = request.method === 'GET' || request.method === 'HEAD'
      done(request.is404 && !isSafe ? this.problem(request) : undefined)
    })
  }

  /** The problem for a request that no route matches. */
  problem(request: FastifyRequest): Problem {
    const [path = ''] = request.raw.url?.split('?', 1) ?? []
    const allowed = new Set<string>()
    for (const { pattern, methods } of this.#paths.values()) {
      if (pattern.test(path)) for (const method of methods) allowed.add(method)
    }
    if (allowed.size === 0 && this.files.isFile(path)) for (const method of ['GET', 'HEAD']) allowed.add(method)
    if (allowed.size > 0 && !allowed.has(request.method)) {
      const { origin } = request.headers
      // Below /ws the origin is checked before anything else.
      if (origin !== undefined && isPathOf(path, '/ws') && !this.#guard.isListed(origin)) {
        return this.#guard.readableRefusal(origin)
      }
      return new Problem('method_not_allowed', { headers: { allow: [...allowed].sort().join(', ') } })
    }
    return new Problem('not_found')
  }
}

function toPattern(url: string): RegExp {
  const source = url.split('/').map((segment) => (segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)))
  return new RegExp(`^${source.join('/')}$`)
}

/** Whether a path, which may have a query, is `prefix` or below it. */
export function isPathOf(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && ['', '/', '?'].includes(path.charAt(prefix.length))
}
