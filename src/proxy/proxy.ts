import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Permits } from '../http/permits.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import { requesterOf } from '../http/requester.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { Problem } from '../problem.ts'
import type { Session, Sessions } from '../sessions/index.ts'
import { discard, NO_BODY, receiveBody, type OutgoingBody } from '../upstream/request-body.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import { responseHeaders, requestHeaders } from '../upstream/headers.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import { requireSession, sessionOf } from './authorized-session.ts'
import { CREDENTIALS, takesBody, type Endpoint } from './endpoint.ts'
import { upstreamOutcome, upstreamProblem } from './upstream-problem.ts'

/** What a call needs on its way upstream. */
export interface ProxyDependencies {
  readonly http: Config['http']
  readonly upstream: Config['upstream']
  readonly metrics: Metrics
  readonly sessions: Sessions
  readonly rest: RestClient
  /** For what is never repeated, everything but GET. */
  readonly orders: RestClient
  /** Under way, by session. */
  readonly calls: Permits
  /** Those whose body is streamed, by session: each withholds a connection to upstream for as long as its browser takes. */
  readonly uploads: Permits
}

/** Far more than a page has open at once, far less than all connections to upstream, which everybody shares. */
const MAX_CALLS = 100
const MAX_UPLOADS = 4

/** One call of a browser, checked: its path is built from the catalog. */
export interface Call {
  readonly endpoint: Endpoint
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly path: string
  readonly session: Session | undefined
}

/**
 * Sends a call upstream and its answer back. A GET is repeated, once for each reason; nothing else ever is.
 * @throws Problem
 */
export async function proxy(deps: ProxyDependencies, call: Call): Promise<void> {
  const key = call.session?.key
  if (key !== undefined && !deps.calls.acquire(key, MAX_CALLS)) throw tooMany()
  try {
    if (takesBody(call.endpoint)) await sendWithBody(deps, call)
    else await sendWithRetries(deps, call, NO_BODY)
  } finally {
    if (key !== undefined) deps.calls.release(key)
  }
}

async function sendWithBody(deps: ProxyDependencies, call: Call): Promise<void> {
  const { endpoint, request } = call
  const body = await receiveBody(request.raw, endpoint.maxBodyBytes ?? deps.http.maxBodyBytes)
  if (body === undefined) return conclude({ is: 'browserGone', sent: 'nothing', status: 0 }, call, false)
  try {
    // Again: until its body had come, which may have taken a while, nothing was sent, and the user may have logged out.
    const session = CREDENTIALS[endpoint.credential].session ? await requireSession(deps, request) : undefined
    if (body.is === 'whole') return await sendWithRetries(deps, { ...call, session }, body)
    const key = session?.key ?? 'anonymous'
    if (!deps.uploads.acquire(key, MAX_UPLOADS)) throw tooMany()
    try {
      await sendWithRetries(deps, { ...call, session }, body)
    } finally {
      deps.uploads.release(key)
    }
  } finally {
    discard(body.content)
  }
}

function tooMany(): Problem {
  return new Problem('rate_limited', { retryAfterSeconds: 1 })
}

async function sendWithRetries(deps: ProxyDependencies, call: Call, body: OutgoingBody): Promise<void> {
  const { endpoint } = call
  const isSafe = endpoint.method === 'GET'
  let { session } = call
  let mayReconnect = isSafe
  let mayRenew = true
  for (;;) {
    const outcome = await send(deps, call, session, body)
    deps.metrics.upstreamRequests.count(endpoint.path, upstreamOutcome(outcome))
    if (mayReconnect && failedBeforeResponse(outcome)) {
      mayReconnect = false
      continue
    }
    if (outcome.is === 'withheld' && outcome.status === 401 && session !== undefined) {
      const by = requesterOf(call.request)
      const found = await deps.sessions.renewAfterRefusal(session, mayRenew, by)
      session = sessionOf(found, call.request, deps.http)
      // It was refused, hence not executed; but only the caller may repeat what is not a GET, or was repeated before.
      if (!isSafe || !mayRenew) throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
      mayRenew = false
      continue
    }
    if (outcome.is === 'answered') return
    return conclude(outcome, call, isSafe)
  }
}

function failedBeforeResponse(outcome: ForwardOutcome): boolean {
  return outcome.is === 'unreachable' || (outcome.is === 'lost' && !outcome.responseBegan)
}

function send(
  deps: ProxyDependencies,
  { endpoint, request, reply, path }: Call,
  session: Session | undefined,
  body: OutgoingBody,
): Promise<ForwardOutcome> {
  const { method, path: route, timeoutMs } = endpoint
  const headers = requestHeaders(request.headers, request.id)
  addCredential(headers, deps.upstream, endpoint, session)
  headers.push(...body.headers)
  const isBearer = CREDENTIALS[endpoint.credential].bearer
  const sentAt = performance.now()
  const isSafe = method === 'GET'
  const client = isSafe ? deps.rest : deps.orders
  return client.forward(
    { method, path, headers, body: body.content, timeoutMs },
    {
      isSafe,
      response: reply.raw,
      begin: (status, upstreamHeaders) => {
        reply.raw.writeHead(status, responseHeaders(reply.getHeaders(), upstreamHeaders))
        reply.hijack()
      },
      withholds: (status) =>
        status >= 500 || (status >= 300 && status < 400 && status !== 304) || (status === 401 && isBearer),
      onHeadersOrFailure: () =>
        deps.metrics.upstreamLatency.add(route, { method }, (performance.now() - sentAt) / 1000),
    },
  )
}

function addCredential(
  headers: string[],
  upstream: Config['upstream'],
  { credential }: Endpoint,
  session: Session | undefined,
): void {
  const { appId, bearer } = CREDENTIALS[credential]
  if (appId) headers.push(upstream.appIdHeader, upstream.appId)
  if (bearer && session !== undefined) headers.push('authorization', `Bearer ${session.record.accessToken}`)
}

/** What is left to do for a call that got no answer it may pass on. @throws Problem */
function conclude(
  outcome: Exclude<ForwardOutcome, { is: 'answered' }>,
  { endpoint, request, reply, session }: Call,
  isSafe: boolean,
): void {
  const { method, path: route } = endpoint
  switch (outcome.is) {
    case 'bodyRefused':
      throw outcome.problem
    case 'cut':
      logFailure(request.log, 'upstream broke off its answer', { method, route }, outcome.cause)
      return
    case 'browserGone':
      if (!isSafe) {
        const { status, sent, cause } = outcome
        const details = { audit: 'browser_left', method, route, sent, status, session: session?.tag }
        request.log.warn({ ...details, ...(cause && { cause }) }, 'the browser left before the answer')
      }
      reply.hijack()
      return
    case 'withheld':
    case 'unreachable':
    case 'lost':
    case 'timeout':
      throw upstreamProblem(outcome, isSafe)
  }
}
