import { toProblem } from '../http/errors.ts'
import type { Permits } from '../limits/permits.ts'
import { Problem } from '../problem.ts'
import { sharerOf, type Session } from '../sessions/index.ts'
import { waiting } from '../telemetry/traces/span.ts'
import { failedBeforeResponse } from '../upstream/no-response.ts'
import { discard, NO_BODY, receiveBody, type OutgoingBody } from '../upstream/request-body.ts'
import { liveSession, renewedSession } from './authorized-session.ts'
import type { Call } from './call.ts'
import { changesSomething, CREDENTIALS, tokenNeedOf } from './endpoint.ts'
import { sendKeyed, type KeyedDependencies } from './idempotency/send-keyed.ts'
import { send } from './send.ts'
import { conclude, upstreamOutcome } from './upstream-problem.ts'

/** The parts that a call below /api uses, with or without an Idempotency-Key. */
export interface ProxyDependencies extends KeyedDependencies {
  /** Calls in progress, by user ({@link sharerOf}). */
  readonly calls: Permits
  /** Calls with a streamed body, by user: each occupies an upstream connection for as long as its browser takes. */
  readonly uploads: Permits
}

/** Far more than a page has open at once, and far fewer than the upstream connections that all sessions share. */
const MAX_CALLS = 100
const MAX_UPLOADS = 4

/**
 * Sends a call upstream and streams the response to the browser. Only a GET is ever repeated, at most once for each reason.
 * @throws Problem
 */
export async function proxy(deps: ProxyDependencies, call: Call): Promise<void> {
  const key = acquirePermit(deps.calls, call.session, MAX_CALLS)
  try {
    if (changesSomething(call.endpoint)) await sendWithBody(deps, call).catch(throwUnknown)
    else await sendWithRetries(deps, call, NO_BODY)
  } finally {
    deps.calls.release(key)
  }
}

/** What nobody expected may have happened after the call was sent. */
function throwUnknown(error: unknown): never {
  const isUnexpected = toProblem(error).code === 'internal_error'
  throw isUnexpected ? new Problem('internal_error', { outcome: 'unknown', cause: error }) : error
}

async function sendWithBody(deps: ProxyDependencies, call: Call): Promise<void> {
  const { endpoint, request, idempotencyKey } = call
  const { maxBodyBytes } = deps.http
  const limit = idempotencyKey === undefined ? maxBodyBytes : Math.min(maxBodyBytes, deps.records.limits.maxBodyBytes)
  const body = await waiting('receive the body', receiveBody(request.raw, limit))
  if (body === undefined) return conclude({ is: 'browserGone', sent: 'nothing', status: 0 }, call)
  try {
    // The body may have taken a while, and its user may have logged out since: nothing may be sent for them then.
    const needsSession = CREDENTIALS[endpoint.credential].session
    const session = needsSession ? await liveSession(deps, request, tokenNeedOf(endpoint)) : undefined
    if (body.is === 'whole') return await sendReceived(deps, { ...call, session }, body)
    const key = acquirePermit(deps.uploads, session, MAX_UPLOADS)
    try {
      await sendReceived(deps, { ...call, session }, body)
    } finally {
      deps.uploads.release(key)
    }
  } finally {
    discard(body.content)
  }
}

/** Sends a call whose body is there, or has begun to arrive. */
function sendReceived(deps: ProxyDependencies, call: Call, body: OutgoingBody): Promise<void> {
  const { session, idempotencyKey } = call
  // A key belongs to a session. Every endpoint that takes one needs a session.
  if (idempotencyKey === undefined || session === undefined) return sendWithRetries(deps, call, body)
  return sendKeyed(deps, { ...call, session, idempotencyKey }, body)
}

/** @returns the key to release @throws Problem rate_limited when the user has as many such calls in progress as it may */
function acquirePermit(permits: Permits, session: Session | undefined, limit: number): string {
  const key = session === undefined ? 'anonymous' : sharerOf(session)
  if (!permits.acquire(key, limit)) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
  return key
}

/** Repeats a GET once on a new connection if the first failed before a response, and once with a renewed token. */
async function sendWithRetries(deps: ProxyDependencies, call: Call, body: OutgoingBody): Promise<void> {
  const isSafe = call.endpoint.method === 'GET'
  let current = call
  let mayReconnect = isSafe
  let mayRenew = true
  for (;;) {
    const sent = await send(deps, current, body)
    const { outcome } = sent
    const { session } = sent.call
    deps.metrics.upstreamRequests.count(call.endpoint, upstreamOutcome(outcome))
    if (outcome.is === 'answered') return
    if (mayReconnect && failedBeforeResponse(outcome)) {
      mayReconnect = false
      continue
    }
    if (outcome.is === 'withheld' && outcome.status === 401 && session !== undefined) {
      current = { ...call, session: await renewedSession(deps, call.request, session, mayRenew) }
      // Upstream refused the call, so it executed nothing. Still, only the caller may repeat an order, or a GET that was repeated already.
      if (!isSafe || !mayRenew) throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
      mayRenew = false
      continue
    }
    return conclude(outcome, sent.call)
  }
}
