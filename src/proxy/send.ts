import { ownHeaders } from '../http/base-headers.ts'
import { breakOff } from '../http/http-socket.ts'
import { Problem } from '../problem.ts'
import { isTokenAccepted, refusalSource, sharerOf, type Session } from '../sessions/index.ts'
import type { Stale } from '../upstream/first-byte.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import { requestHeaders, responseHeaders } from '../upstream/headers.ts'
import type { OutgoingBody } from '../upstream/request-body.ts'
import type { Call, CallDependencies } from './call.ts'
import { changesSomething, CREDENTIALS } from './endpoint.ts'
import type { AnswerSink } from './idempotency/answer-sink.ts'
import type { Claim } from './idempotency/claim.ts'
import { requireUnpaused } from './paused-orders.ts'
import { isRepeatedOn, isWithheld } from './upstream-problem.ts'

/** The claim and the sink of a call with an Idempotency-Key. */
interface KeyedSending {
  readonly claim: Pick<Claim, 'maySend'>
  /** Gets the response instead of the browser. */
  readonly sink: AnswerSink
}

/** The outcome of a call, and the call as it was sent: its session may be a newer version of the one that it came with. */
interface Sent<SomeCall extends Call> {
  readonly call: SomeCall
  readonly outcome: Exclude<ForwardOutcome, Stale>
}

/** How often a call is sent if its session changes each time while it waits. A session hardly ever changes twice a minute. */
const MAX_TRIES = 3

/**
 * Sends a call once. Nothing is sent if its session has ended since it was read, if its claim to an Idempotency-Key has ended, or if
 * it is an order and orders are paused. A call may wait for the store, for the budget and for a connection, so `FirstByte` asks when it
 * is about to be written. For an order this asks before these waits, too, since its body may have taken a while, and before each later
 * piece of a body that is streamed. Where no change was reported, none of this costs a round trip, unless this process stood still, or
 * the last reading from a Redis Cluster is a second old: then the session is read again.
 * @throws Problem, StoreUnavailable; nothing was sent then
 */
export async function send<SomeCall extends Call>(
  deps: CallDependencies,
  original: SomeCall,
  body: OutgoingBody,
  keyed?: KeyedSending,
): Promise<Sent<SomeCall>> {
  let { session } = original
  const isChange = changesSomething(original.endpoint)
  const controls = isChange ? deps.controls : undefined
  const mayGoOn = async (): Promise<void> => {
    if (session === undefined) return
    if (!deps.sessions.isCurrent(session)) session = await reread(deps, session)
    if (controls !== undefined) await requireUnpaused(controls, session)
  }
  if (body.is === 'streamed') body.content.mayGoOn = mayGoOn
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (keyed?.claim.maySend === false) break
    if (isChange || tries > 0) await mayGoOn()
    const call = session === original.session ? original : { ...original, session }
    // A stream that upstream did not get cannot be read a second time.
    if (tries > 0 && body.is === 'streamed') throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
    const outcome = await sendOnce(deps, call, body, keyed)
    if (outcome.is === 'stale') continue
    noteAccepted(deps, call, outcome)
    return { call, outcome }
  }
  throw new Problem('session_store_unavailable', { retryAfterSeconds: 1 })
}

/** Notes that upstream has accepted the token of a call, whatever else it said of the call. */
function noteAccepted({ sessions }: CallDependencies, { endpoint, session }: Call, outcome: ForwardOutcome): void {
  // Nobody asks about any other session.
  if (session?.record.isAfterRefusal !== true || !CREDENTIALS[endpoint.credential].bearer) return
  if ('status' in outcome && isTokenAccepted(outcome.status)) sessions.noteAccepted(session)
}

/** The state of the session's token does not count: it was good when the call came, and is renewed if upstream refuses it. */
async function reread({ sessions, http }: CallDependencies, session: Session): Promise<Session> {
  const found = await sessions.reread(session)
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') throw new Problem('session_expired', { loginUrl: `${http.publicUrl}/auth/login` })
  return found.session
}

/**
 * Makes one attempt to send a call upstream and to stream its response to the browser. Nothing is sent if its session has
 * changed, its claim has ended, or orders were paused, while it waited. Never rejects.
 */
function sendOnce(
  deps: CallDependencies,
  { endpoint, request, reply, path, session }: Call,
  body: OutgoingBody,
  keyed?: KeyedSending,
): Promise<ForwardOutcome> {
  const { method, path: route, credential } = endpoint
  const { metrics, upstream, sessions, controls } = deps
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
      template: route,
      headers,
      body: body.content,
      subject: session && sharerOf(session),
      source: session && (() => refusalSource(session, request.ip)),
      conditions: session && {
        session: () => sessions.isCurrent(session),
        claim: keyed?.claim,
        orders: isSafe ? undefined : controls && (() => controls.verdictOn(session) === undefined),
      },
    },
    {
      isSafe,
      response: keyed?.sink ?? reply.raw,
      // Timeouts between two pieces would let a slow upstream keep the call undecided for ever.
      limit: keyed && { ms: upstream.headersMs + upstream.bodyMs, applies: () => !keyed.sink.isStreaming },
      begin: (status, upstreamHeaders) => {
        if (keyed !== undefined) return keyed.sink.begin(status, upstreamHeaders)
        reply.raw.writeHead(
          status,
          responseHeaders(status, ownHeaders(reply), upstreamHeaders, upstream.budget !== undefined),
        )
        reply.hijack()
      },
      breakOff: () => (keyed === undefined ? breakOff(reply.raw) : keyed.sink.breakOff()),
      withholds: (status) =>
        isWithheld(status) ||
        (status === 401 && bearer) ||
        // Browsers repeat some calls by themselves. With a key such a repetition gets the same response, and nothing is sent.
        (!isSafe && keyed === undefined && isRepeatedOn(status)),
      onHeadersOrFailure: () => metrics.upstreamLatency.add(route, { method }, (performance.now() - sentAt) / 1000),
    },
  )
}
