import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../problem.ts'

/** Paths that have routes, with their methods, so that a wrong method on one of them is a 405 and not a 404. */
export class KnownPaths {
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()

  constructor(server: FastifyInstance) {
    server.addHook('onRoute', ({ url, method }) => {
      if (url.includes('*')) return
      const known = this.#paths.get(url) ?? { pattern: toPattern(url), methods: new Set() }
      this.#paths.set(url, known)
      for (const each of [method].flat()) known.methods.add(each)
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
      return new Problem('method_not_allowed', { allow: [...allowed].sort().join(', ') })
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
