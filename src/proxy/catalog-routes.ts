import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Guard } from '../http/guard.ts'
import { MinuteCounts } from '../http/minute-counts.ts'
import { Permits } from '../http/permits.ts'
import { Problem } from '../problem.ts'
import type { Session } from '../sessions/index.ts'
import { requireSession } from './authorized-session.ts'
import { CREDENTIALS, pathBuilder, takesBody, type Endpoint } from './endpoint.ts'
import { proxy, type ProxyDependencies } from './proxy.ts'
import { SharedResponse, type SharedResponseDependencies } from './shared-responses.ts'

/** What the routes below /api work with. */
export interface CatalogDependencies extends Omit<ProxyDependencies, 'calls' | 'uploads'> {
  readonly guard: Guard
  /** What responses that are the same for everybody need. */
  readonly shared: Pick<SharedResponseDependencies, 'store' | 'envelope' | 'everyMs'>
}

const MAX_QUERY_BYTES = 4096

/** One route below /api for every endpoint of the catalog. */
export async function catalogRoutes(
  fastify: FastifyInstance,
  endpoints: readonly Endpoint[],
  deps: CatalogDependencies,
): Promise<void> {
  const { guard, http } = deps
  // Bodies are not parsed, whatever they are.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  guard.addPreflight(fastify, '/api/*', [...new Set(endpoints.map(({ method }) => method))])

  const requests = new MinuteCounts()
  const proxyDeps: ProxyDependencies = { ...deps, calls: new Permits(), uploads: new Permits() }
  for (const endpoint of endpoints) {
    const buildPath = pathBuilder(endpoint)
    const needsSession = CREDENTIALS[endpoint.credential].session
    const idleMs = connectionIdleMs(endpoint, deps)
    const { everyMs, store, envelope } = deps.shared
    const { rest, metrics, upstream } = deps
    const timeoutMs = endpoint.timeoutMs ?? upstream.headersMs
    const shared = endpoint.isShared
      ? new SharedResponse(endpoint, { rest, metrics, store, envelope, everyMs, timeoutMs })
      : undefined
    const answer = (request: FastifyRequest, reply: FastifyReply, session?: Session): Promise<void> => {
      if (session !== undefined && !requests.allows(session.key, http.apiRequestsPerMinute)) {
        throw new Problem('rate_limited', { retryAfterSeconds: requests.secondsLeft })
      }
      // Node goes back to the usual limit with the next request.
      if (idleMs !== undefined) request.raw.socket.setTimeout(idleMs)
      const path = buildPath(request.params as Record<string, string>)
      if (path === undefined) throw new Problem('not_found')
      const query = checkedQuery(endpoint, request)
      if (takesBody(endpoint)) requireUnencoded(request)
      if (shared !== undefined) return shared.send(request, reply)
      return proxy(proxyDeps, { endpoint, request, reply, path: path + query, session })
    }
    const handler = (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      guard.requireScript(request)
      const session = needsSession ? requireSession(deps, request) : undefined
      // Nothing to wait for in most requests, so they do not wait.
      return session instanceof Promise
        ? session.then((read) => answer(request, reply, read))
        : answer(request, reply, session)
    }
    fastify.route({ method: endpoint.method, url: `/api${endpoint.path}`, handler })
  }
}

/** Nothing moves on a browser's connection while upstream is waited for, at most twice: how long that may be, if not as usual. */
function connectionIdleMs(
  { timeoutMs = 0 }: Endpoint,
  { http, upstream }: CatalogDependencies,
): number | undefined {
  const longer = timeoutMs - upstream.headersMs
  return longer > 0 ? http.connectionIdleMs + 2 * longer : undefined
}

/** Upstream is not told of a coding, so it could not read the body. @throws Problem unsupported_media_type */
function requireUnencoded({ headers }: FastifyRequest): void {
  const { 'content-encoding': coding = 'identity' } = headers
  if (coding.toLowerCase() === 'identity') return
  throw new Problem('unsupported_media_type', {
    detail: 'Send the body without a Content-Encoding.',
    headers: { 'accept-encoding': 'identity' },
  })
}

/** The query as it came, `?` included. @throws Problem bad_request, validation_failed */
function checkedQuery(endpoint: Endpoint, request: FastifyRequest): string {
  const url = request.raw.url ?? ''
  const at = url.indexOf('?')
  const query = at === -1 ? '' : url.slice(at + 1)
  // That it is printable ASCII without `#` has been checked with the whole target.
  if (query.length > MAX_QUERY_BYTES) {
    throw new Problem('bad_request', { detail: `The query must have at most ${MAX_QUERY_BYTES} bytes.` })
  }
  const errors = endpoint.query?.check(query) ?? []
  if (errors.length > 0) throw new Problem('validation_failed', { errors })
  return at === -1 ? '' : `?${query}`
}
