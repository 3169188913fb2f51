import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { Guard } from '../http/guard.ts'
import type { Metrics } from '../measure.ts'
import type { AccessTokens } from '../oauth/access-tokens.ts'
import { Problem } from '../problem.ts'
import type { SessionReader } from '../session/session-reader.ts'
import type { Session } from '../session/sessions.ts'
import { boundedBody } from '../upstream/bounded-body.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import { requestHeaders } from '../upstream/headers.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import { pathBuilder, type Endpoint } from './endpoint.ts'
import { SharedAnswers } from './shared-answers.ts'

/** What the routes below /api work with. */
export interface CatalogParts {
  readonly http: Config['http']
  readonly upstream: Config['upstream']
  readonly guard: Guard
  readonly metrics: Metrics
  readonly reader: SessionReader
  readonly tokens: AccessTokens
  readonly rest: RestClient
}

type Call = {
  readonly endpoint: Endpoint
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly path: string
  readonly session: Session | undefined
}

const MAX_QUERY_BYTES = 4096
const QUERY = /^[\x21\x22\x24-\x7e]*$/

/** One route below /api for every endpoint of the catalog. */
export async function catalogRoutes(
  fastify: FastifyInstance,
  endpoints: readonly Endpoint[],
  parts: CatalogParts,
): Promise<void> {
  const { guard } = parts
  // Bodies are not parsed, whatever they are.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  fastify.addHook('onRequest', async (request, reply) => guard.allowReading(request, reply))
  guard.addPreflight(fastify, '/api/*', [...new Set(endpoints.map(({ method }) => method))])

  const shared = new SharedAnswers(parts.rest, parts.metrics)
  for (const endpoint of endpoints) {
    const buildPath = pathBuilder(endpoint)
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      guard.requireScript(request)
      const session = endpoint.credential === 'none' ? undefined : await requireSession(parts, request)
      const path = buildPath(request.params as Record<string, string>)
      if (path === undefined) throw new Problem('not_found')
      const query = checkedQuery(endpoint, request)
      if (endpoint.sharedForMs !== undefined) return shared.send(endpoint, path, reply)
      return proxy(parts, { endpoint, request, reply, path: path + query, session })
    }
    fastify.route({ method: endpoint.method, url: `/api${endpoint.path}`, handler })
  }
}

/** The live session of a request, with a token good for use. @throws Problem */
async function requireSession(parts: CatalogParts, request: FastifyRequest): Promise<Session> {
  const found = await parts.reader.read(request.headers.cookie)
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') {
    throw new Problem('login_required', { loginUrl: `${parts.http.publicUrl}/auth/login` })
  }
  const { session } = found
  request.sessionTag = session.tag
  parts.reader.used(session)
  if (parts.tokens.isGood(session)) return session
  const renewed = await parts.tokens.renewed(session)
  switch (renewed.is) {
    case 'good':
      return renewed.session
    case 'ended':
      throw sessionExpired(parts)
    case 'providerDown':
      throw new Problem('provider_unavailable', { cause: renewed.cause })
  }
}

function sessionExpired(parts: CatalogParts): Problem {
  return new Problem('session_expired', { loginUrl: `${parts.http.publicUrl}/auth/login` })
}

/** The query as it came, `?` included. @throws Problem bad_request, validation_failed */
function checkedQuery(endpoint: Endpoint, request: FastifyRequest): string {
  const url = request.raw.url ?? ''
  const at = url.indexOf('?')
  const query = at === -1 ? '' : url.slice(at + 1)
  if (query.length > MAX_QUERY_BYTES || !QUERY.test(query) || url.includes('#')) {
    throw new Problem('bad_request', {
      detail: `The query must be printable ASCII without #, at most ${MAX_QUERY_BYTES} bytes.`,
    })
  }
  const errors = endpoint.query?.(query) ?? []
  if (errors.length > 0) throw new Problem('validation_failed', { errors })
  return at === -1 ? '' : `?${query}`
}

/** Sends a call upstream and its answer back. A GET is repeated, once for each reason; nothing else ever is. */
async function proxy(parts: CatalogParts, call: Call): Promise<FastifyReply> {
  const { endpoint, reply } = call
  const isSafe = endpoint.method === 'GET'
  let { session } = call
  let mayReconnect = isSafe
  let mayRenew = true
  for (;;) {
    const outcome = await send(parts, { ...call, session }, isSafe)
    parts.metrics.upstreamRequests.inc({ route: endpoint.path, outcome: outcome.is })
    if ((outcome.is === 'unreachable' || outcome.is === 'lost') && mayReconnect) {
      mayReconnect = false
      continue
    }
    if (outcome.is === 'held' && outcome.status === 401 && session !== undefined) {
      session = await renewedAfterRefusal(parts, session, mayRenew)
      // It was refused, hence not executed; but only the caller may repeat what is not a GET.
      if (!isSafe) throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
      mayRenew = false
      continue
    }
    return conclude(outcome, call, reply, isSafe)
  }
}

async function renewedAfterRefusal(
  parts: CatalogParts,
  session: Session,
  mayRenew: boolean,
): Promise<Session> {
  const renewed = await parts.tokens.afterRefusal(session, mayRenew)
  switch (renewed.is) {
    case 'good':
      return renewed.session
    case 'ended':
      throw sessionExpired(parts)
    case 'providerDown':
      throw new Problem('provider_unavailable', { cause: renewed.cause })
  }
}

async function send(parts: CatalogParts, call: Call, isSafe: boolean): Promise<ForwardOutcome> {
  const { endpoint, request, reply, path, session } = call
  const headers = requestHeaders(request.headers, request.id)
  addCredential(headers, parts.upstream, endpoint, session)
  const body = isSafe ? { stream: null, headers: [] } : boundedBody(request.raw, parts.http.maxBodyBytes)
  headers.push(...body.headers)
  const isBearer = endpoint.credential === 'bearer'
  return parts.rest.forward(
    { method: endpoint.method, path, headers, body: body.stream },
    {
      isSafe,
      response: reply.raw,
      ownHeaders: reply.getHeaders(),
      onAnswer: () => void reply.hijack(),
      holds: (status) =>
        status >= 500 || (status >= 300 && status < 400 && status !== 304) || (status === 401 && isBearer),
    },
  )
}

function addCredential(
  headers: string[],
  upstream: Config['upstream'],
  { credential }: Endpoint,
  session: Session | undefined,
): void {
  if (credential === 'none') return
  headers.push(upstream.appIdHeader, upstream.appId)
  if (credential === 'bearer' && session !== undefined) {
    headers.push('authorization', `Bearer ${session.record.accessToken}`)
  }
}

function conclude(outcome: ForwardOutcome, call: Call, reply: FastifyReply, isSafe: boolean): FastifyReply {
  const unknown = isSafe ? {} : { outcome: 'unknown' as const }
  switch (outcome.is) {
    case 'answered':
      return reply
    case 'held': {
      const isError = outcome.status >= 500
      throw new Problem('upstream_error', {
        ...(isError
          ? { status: outcome.status }
          : { detail: 'The trading service answered with a redirect.' }),
        ...(Number(outcome.retryAfter) >= 0 && { retryAfterSeconds: Number(outcome.retryAfter) }),
        ...unknown,
      })
    }
    case 'unreachable':
      throw new Problem('upstream_unreachable', { cause: outcome.cause })
    case 'lost':
      throw new Problem('upstream_lost', { cause: outcome.cause, ...unknown })
    case 'timeout':
      throw new Problem('upstream_timeout', { cause: outcome.cause, ...unknown })
    case 'bodyTooLarge':
      reply.header('connection', 'close')
      throw new Problem('body_too_large')
    case 'cut':
      call.request.log.warn(
        { err: outcome.cause, route: call.endpoint.path },
        'upstream broke off its answer',
      )
      return reply
    case 'browserGone':
      if (!isSafe) {
        const { method, path: route } = call.endpoint
        const details = {
          audit: 'browser_left',
          method,
          route,
          status: outcome.status,
          session: call.session?.tag,
        }
        call.request.log.warn(details, 'the browser left before the answer')
      }
      return reply.hijack()
  }
}
