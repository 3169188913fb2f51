import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { CallLimit } from '../limits/call-limit.ts'
import type { Guard } from '../http/guard.ts'
import { Permits } from '../limits/permits.ts'
import { Problem } from '../problem.ts'
import type { Authorization, Session } from '../sessions/index.ts'
import type { ConfirmableWrites } from '../store/store.ts'
import { waiting } from '../telemetry/traces/span.ts'
import { authorizedSession } from './authorized-session.ts'
import type { CallDependencies } from './call.ts'
import { changesSomething, CREDENTIALS, pathBuilder, tokenNeedOf, type Endpoint } from './endpoint.ts'
import { keyOf, requiresKey } from './idempotency/key-header.ts'
import { IdempotencyRecords } from './idempotency/idempotency-records.ts'
import { noteAccount } from '../http/requester.ts'
import { proxy, type ProxyDependencies } from './proxy.ts'
import { SharedResponse } from './shared-responses.ts'

interface CatalogDependencies extends CallDependencies {
  readonly endpoints: readonly Endpoint[]
  readonly guard: Guard
  /** Absent without API_REQUESTS_PER_MINUTE. */
  readonly callLimit: CallLimit | undefined
  readonly idempotency: Config['idempotency']
  /** For records that must outlive a failover. */
  readonly confirmed: ConfirmableWrites
  readonly secrets: Config['secrets']
}

/** The name of the id of a trading account in the paths of the catalog. */
const ACCOUNT_ID = 'account_id'
const MAX_QUERY_BYTES = 4096

/** One route below /api for every endpoint of the catalog. */
export async function catalogRoutes(fastify: FastifyInstance, deps: CatalogDependencies): Promise<void> {
  const { endpoints, guard, idempotency } = deps
  // Bodies pass unparsed, whatever they are.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  guard.addPreflight(fastify, '/api/*', [...new Set(endpoints.map(({ method }) => method))])

  // A call that waits must hear at once that its session has ended on another instance.
  deps.store.watchBurials()
  const records = new IdempotencyRecords(deps.store, deps.envelope, idempotency, undefined, deps.confirmed)
  fastify.addHook('onClose', () => records.close())
  const proxyDeps = { ...deps, calls: new Permits(), uploads: new Permits(), records }
  for (const endpoint of endpoints) {
    fastify.route({ method: endpoint.method, url: `/api${endpoint.path}`, handler: handlerOf(endpoint, proxyDeps) })
  }
}

function handlerOf(endpoint: Endpoint, deps: CatalogDependencies & ProxyDependencies) {
  const { guard, http, sessions, callLimit, idempotency, secrets } = deps
  const buildPath = pathBuilder(endpoint)
  const needsSession = CREDENTIALS[endpoint.credential].session
  const isChange = changesSomething(endpoint)
  const tokenNeed = tokenNeedOf(endpoint)
  const needsKey = requiresKey(endpoint, idempotency)
  const shared = endpoint.isShared ? new SharedResponse(endpoint, deps) : undefined
  const namesAccount = endpoint.path.includes(`/:${ACCOUNT_ID}`)

  function respond(request: FastifyRequest, reply: FastifyReply, session?: Session): Promise<void> {
    const path = buildPath(request.params as Record<string, string>)
    if (path === undefined) throw new Problem('not_found')
    const query = checkedQuery(endpoint, request)
    if (isChange) requireUnencoded(request)
    if (shared !== undefined) return shared.send(request, reply)
    const idempotencyKey = isChange ? keyOf(request, needsKey) : undefined
    return proxy(deps, { endpoint, request, reply, path: path + query, session, idempotencyKey })
  }

  async function respondLater(
    request: FastifyRequest,
    reply: FastifyReply,
    found: Authorization | Promise<Authorization>,
  ): Promise<void> {
    const session = authorizedSession(await waiting('read the session', found), request, http)
    const verdict = await callLimit?.count(session.key)
    if (verdict?.is === 'refused') throw new Problem('rate_limited', { retryAfterSeconds: verdict.retryAfterSeconds })
    return respond(request, reply, session)
  }

  return (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (namesAccount) noteAccount(request, ACCOUNT_ID, secrets)
    guard.requireScript(request)
    if (!needsSession) return respond(request, reply)
    const found = sessions.authorize(request.headers.cookie, tokenNeed, request)
    // In the steady state the session is cached. To await it all the same would cost a GET 3 to 5 % more processor time.
    return found instanceof Promise || callLimit !== undefined
      ? respondLater(request, reply, found)
      : respond(request, reply, authorizedSession(found, request, http))
  }
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
