import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { CallLimit, CallVerdict } from '../limits/call-limit.ts'
import type { Guard } from '../http/guard.ts'
import { Permits } from '../limits/permits.ts'
import { Problem } from '../problem.ts'
import type { Session } from '../sessions/index.ts'
import { requireSession } from './authorized-session.ts'
import type { CallDependencies } from './call.ts'
import { CREDENTIALS, pathBuilder, takesBody, takesKey, type Endpoint } from './endpoint.ts'
import { keyOf, requiresKey } from './idempotency/key-header.ts'
import { KeyedCalls } from './idempotency/keyed-calls.ts'
import { noteAccount } from '../http/requester.ts'
import { proxy } from './proxy.ts'
import { SharedResponse } from './shared-responses.ts'

/** What the routes below /api work with. */
interface CatalogDependencies extends CallDependencies {
  readonly endpoints: readonly Endpoint[]
  readonly guard: Guard
  /** Absent without API_REQUESTS_PER_MINUTE. */
  readonly callLimit: CallLimit | undefined
  readonly idempotency: Config['idempotency']
  readonly secrets: Config['secrets']
}

/** What the catalog calls the id of a trading account in a path. */
const ACCOUNT_ID = 'account_id'
const MAX_QUERY_BYTES = 4096

/** One route below /api for every endpoint of the catalog. */
export async function catalogRoutes(fastify: FastifyInstance, deps: CatalogDependencies): Promise<void> {
  const { endpoints, guard, callLimit, idempotency, secrets } = deps
  // Bodies pass unparsed, whatever they are.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  guard.addPreflight(fastify, '/api/*', [...new Set(endpoints.map(({ method }) => method))])

  // A call that waits must hear at once that its session has ended on another instance.
  deps.store.watchBurials()
  const { replicas } = idempotency
  const confirmed = replicas === 0 ? deps.store : await deps.store.openConfirmed(replicas)
  const keyed = new KeyedCalls(deps.store, deps.envelope, idempotency, confirmed)
  fastify.addHook('onClose', () => keyed.close())
  const proxyDeps = { ...deps, calls: new Permits(), uploads: new Permits(), keyed }
  for (const endpoint of endpoints) {
    const buildPath = pathBuilder(endpoint)
    const needsSession = CREDENTIALS[endpoint.credential].session
    const needsKey = requiresKey(endpoint, idempotency)
    const shared = endpoint.isShared ? new SharedResponse(endpoint, deps) : undefined
    const respond = (request: FastifyRequest, reply: FastifyReply, session?: Session): Promise<void> => {
      const path = buildPath(request.params as Record<string, string>)
      if (path === undefined) throw new Problem('not_found')
      const query = checkedQuery(endpoint, request)
      if (takesBody(endpoint)) requireUnencoded(request)
      if (shared !== undefined) return shared.send(request, reply)
      const idempotencyKey = takesKey(endpoint) ? keyOf(request, needsKey) : undefined
      return proxy(proxyDeps, { endpoint, request, reply, path: path + query, session, idempotencyKey })
    }
    const limited = (request: FastifyRequest, reply: FastifyReply, session?: Session): Promise<void> => {
      if (session === undefined || callLimit === undefined) return respond(request, reply, session)
      const verdict = callLimit.count(session.key)
      if (verdict instanceof Promise) {
        return verdict.then((later) => respond(request, reply, requireAllowed(later, session)))
      }
      return respond(request, reply, requireAllowed(verdict, session))
    }
    const namesAccount = endpoint.path.includes(`/:${ACCOUNT_ID}`)
    const handler = (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      if (namesAccount) noteAccount(request, ACCOUNT_ID, secrets)
      guard.requireScript(request)
      const session = needsSession ? requireSession(deps, request) : undefined
      // In the steady state the session is at hand, so most requests skip a turn of the microtask queue.
      return session instanceof Promise
        ? session.then((read) => limited(request, reply, read))
        : limited(request, reply, session)
    }
    fastify.route({ method: endpoint.method, url: `/api${endpoint.path}`, handler })
  }
}

/** The session, whose call was counted. @throws Problem rate_limited */
function requireAllowed(verdict: CallVerdict, session: Session): Session {
  if (verdict.is === 'refused') throw new Problem('rate_limited', { retryAfterSeconds: verdict.retryAfterSeconds })
  return session
}

/** Upstream does not get the Content-Encoding header, so it could not read an encoded body. @throws Problem unsupported_media_type */
function requireUnencoded({ headers }: FastifyRequest): void {
  const { 'content-encoding': coding = 'identity' } = headers
  if (coding.toLowerCase() === 'identity') return
  throw new Problem('unsupported_media_type', {
    detail: 'Send the body without a Content-Encoding.',
    headers: { 'accept-encoding': 'identity' },
  })
}

/** The query as the browser sent it, `?` included. @throws Problem bad_request, validation_failed */
function checkedQuery(endpoint: Endpoint, request: FastifyRequest): string {
  const url = request.raw.url ?? ''
  const at = url.indexOf('?')
  const query = at === -1 ? '' : url.slice(at + 1)
  // The server has already checked that the whole target is printable ASCII without `#`.
  if (query.length > MAX_QUERY_BYTES) {
    throw new Problem('bad_request', { detail: `The query must have at most ${MAX_QUERY_BYTES} bytes.` })
  }
  const errors = endpoint.query?.check(query) ?? []
  if (errors.length > 0) throw new Problem('validation_failed', { errors })
  return at === -1 ? '' : `?${query}`
}
