import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Guard } from '../http/guard.ts'
import { Problem } from '../problem.ts'
import type { SessionLookup, SessionReader } from '../session/session-reader.ts'
import type { Session } from '../session/sessions.ts'
import { CallsInFlight } from './calls-in-flight.ts'
import { CREDENTIALS, pathBuilder, type Endpoint } from './endpoint.ts'
import { proxy, usableSession, type ProxyParts } from './proxy.ts'
import { RequestLimit } from './request-limit.ts'
import { SharedAnswers } from './shared-answers.ts'

/** What the routes below /api work with. */
export interface CatalogParts extends Omit<ProxyParts, 'inFlight'> {
  readonly guard: Guard
  readonly reader: SessionReader
}

const MAX_QUERY_BYTES = 4096

/** One route below /api for every endpoint of the catalog. */
export async function catalogRoutes(
  fastify: FastifyInstance,
  endpoints: readonly Endpoint[],
  parts: CatalogParts,
): Promise<void> {
  const { guard, http } = parts
  // Bodies are not parsed, whatever they are.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  guard.addPreflight(fastify, '/api/*', [...new Set(endpoints.map(({ method }) => method))])

  const limit = new RequestLimit(http.apiRequestsPerMinute)
  const proxyParts: ProxyParts = { ...parts, inFlight: new CallsInFlight() }
  const shared = new SharedAnswers(parts.rest, parts.metrics)
  for (const endpoint of endpoints) {
    const buildPath = pathBuilder(endpoint)
    const needsSession = CREDENTIALS[endpoint.credential].session
    const idleMs = connectionIdleMs(endpoint, parts)
    const answer = (request: FastifyRequest, reply: FastifyReply, session?: Session): Promise<void> => {
      if (session !== undefined) limit.count(session.key)
      // Node goes back to the usual limit with the next request.
      if (idleMs !== undefined) request.raw.socket.setTimeout(idleMs)
      const path = buildPath(request.params as Record<string, string>)
      if (path === undefined) throw new Problem('not_found')
      const query = checkedQuery(endpoint, request)
      if (endpoint.sharedForMs !== undefined) return shared.send(endpoint, path, request, reply)
      return proxy(proxyParts, { endpoint, request, reply, path: path + query, session })
    }
    const handler = (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      guard.requireScript(request)
      const session = needsSession ? requireSession(parts, request) : undefined
      // Nothing to wait for in most requests, so they do not wait.
      return session instanceof Promise
        ? session.then((read) => answer(request, reply, read))
        : answer(request, reply, session)
    }
    fastify.route({ method: endpoint.method, url: `/api${endpoint.path}`, handler })
  }
}

/** Nothing moves on a browser's connection while upstream is waited for, at most twice: how long that may be, if not as usual. */
function connectionIdleMs({ timeoutMs = 0 }: Endpoint, { http, upstream }: CatalogParts): number | undefined {
  const longer = timeoutMs - upstream.headersMs
  return longer > 0 ? http.connectionIdleMs + 2 * longer : undefined
}

/** The live session of a request, with a token good for use. @throws Problem */
function requireSession(parts: CatalogParts, request: FastifyRequest): Session | Promise<Session> {
  const found = parts.reader.use(request.headers.cookie)
  return found instanceof Promise
    ? found.then((session) => goodSession(parts, request, session))
    : goodSession(parts, request, found)
}

function goodSession(
  parts: CatalogParts,
  request: FastifyRequest,
  found: SessionLookup,
): Session | Promise<Session> {
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') {
    throw new Problem('login_required', { loginUrl: `${parts.http.publicUrl}/auth/login` })
  }
  const { session } = found
  request.sessionTag = session.tag
  if (parts.tokens.isGood(session)) return session
  return parts.tokens.renewed(session).then((renewed) => usableSession(parts.http, renewed))
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
