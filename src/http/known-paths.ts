import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'

/**
 * Paths that have routes, with their methods, so that a wrong method on one of them is a 405 and not a 404. OPTIONS is
 * none of them: it is there for preflights.
 */
export class KnownPaths {
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()

  constructor(server: FastifyInstance) {
    server.addHook('onRoute', ({ url, method }) => {
      if (url.includes('*') || method === 'OPTIONS') return
      const known = this.#paths.get(url) ?? { pattern: toPattern(url), methods: new Set() }
      this.#paths.set(url, known)
      for (const each of [method].flat()) known.methods.add(each)
    })
    // Before its body is looked at: that it has a bad one as well is not what is wrong with it.
    server.addHook('onRequest', (request, _reply, done) => {
      const isSafe = request.method === 'GET' || request.method === 'HEAD'
      done(request.is404 && !isSafe ? this.problem(request) : undefined)
    })
  }

  /** What to answer when no route took the request. */
  problem(request: FastifyRequest): Problem {
    const [path = ''] = request.raw.url?.split('?', 1) ?? []
    const allowed = new Set<string>()
    for (const { pattern, methods } of this.#paths.values()) {
      if (pattern.test(path)) for (const method of methods) allowed.add(method)
    }
    if (allowed.size > 0 && !allowed.has(request.method)) {
      return new Problem('method_not_allowed', { headers: { allow: [...allowed].sort().join(', ') } })
    }
    return new Problem('not_found')
  }
}

function toPattern(url: string): RegExp {
  const source = url.split('/').map((segment) => (segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)))
  return new RegExp(`^${source.join('/')}$`)
}

/** Whether a path, query and all, is `prefix` or below it. */
export function isPathOf(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && ['', '/', '?'].includes(path.charAt(prefix.length))
}
