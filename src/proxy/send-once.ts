import { refusalSource, sharerOf } from '../sessions/index.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import { requestHeaders, responseHeaders } from '../upstream/headers.ts'
import type { OutgoingBody } from '../upstream/request-body.ts'
import type { Call, CallDependencies } from './call.ts'
import { CREDENTIALS } from './endpoint.ts'
import type { AnswerSink } from './idempotency/answer-sink.ts'
import type { Claim } from './idempotency/claim.ts'
import { isRepeatedOn, isWithheld } from './upstream-problem.ts'

/** What a call with an Idempotency-Key is sent with. */
export interface KeyedSending {
  readonly claim: Pick<Claim, 'maySend'>
  /** Gets the response instead of the browser. */
  readonly sink: AnswerSink
}

/**
 * Makes one attempt to send a call upstream and to stream its response to the browser. Nothing is sent if its session has
 * changed, or its claim has ended, while it waited. Never rejects.
 */
export function sendOnce(
  deps: CallDependencies,
  { endpoint, request, reply, path, session }: Call,
  body: OutgoingBody,
  keyed?: KeyedSending,
): Promise<ForwardOutcome> {
  const { method, path: route, credential } = endpoint
  const { metrics, upstream, sessions } = deps
  const { appId, bearer } = CREDENTIALS[credential]
  const headers = requestHeaders(request.headers, request.id)
  if (appId) headers.push(upstream.appIdHeader, upstream.appId)
  if (bearer && session !== undefined) headers.push('authorization', `Bearer ${session.record.accessToken}`)
  headers.push(...body.headers)
  const isSafe = method === 'GET'
  const client = isSafe ? deps.clients.reads : deps.clients.orders
  const sentAt = performance.now()
  return client.forward(
    {
      method,
      path,
      headers,
      body: body.content,
      ...(session !== undefined && {
        subject: sharerOf(session),
        source: () => refusalSource(session, request.ip),
        isCurrent: () => sessions.isCurrent(session) && keyed?.claim.maySend !== false,
      }),
    },
    {
      isSafe,
      response: keyed?.sink ?? reply.raw,
      // Timeouts between two pieces would let a slow upstream keep the call undecided for ever.
      ...(keyed !== undefined && {
        limit: { ms: upstream.headersMs + upstream.bodyMs, applies: () => !keyed.sink.isStreaming },
      }),
      begin: (status, upstreamHeaders) => {
        if (keyed !== undefined) return keyed.sink.begin(status, upstreamHeaders)
        reply.raw.writeHead(status, responseHeaders(reply.getHeaders(), upstreamHeaders, upstream.budget !== undefined))
        reply.hijack()
      },
      withholds: (status) =>
        isWithheld(status) ||
        (status === 401 && bearer) ||
        // With a key, a browser that repeats the call gets the same response, and nothing is sent.
        (!isSafe && keyed === undefined && isRepeatedOn(status)),
      onHeadersOrFailure: () => metrics.upstreamLatency.add(route, { method }, (performance.now() - sentAt) / 1000),
    },
  )
}

/** Whether upstream certainly sent no part of a response, so that a GET may be repeated on another connection. */
export function failedBeforeResponse(outcome: ForwardOutcome): boolean {
  return outcome.is === 'unreachable' || (outcome.is === 'lost' && !outcome.responseBegan)
}
