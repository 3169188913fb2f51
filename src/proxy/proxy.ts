import type { Permits } from '../http/permits.ts'
import { requesterOf } from '../http/requester.ts'
import { Problem } from '../problem.ts'
import type { Session } from '../sessions/index.ts'
import { discard, NO_BODY, receiveBody, type OutgoingBody } from '../upstream/request-body.ts'
import { authorizedSession, requireSession } from './authorized-session.ts'
import type { Call, CallDependencies } from './call.ts'
import { conclude } from './conclude.ts'
import { CREDENTIALS, takesBody } from './endpoint.ts'
import { failedBeforeResponse, sendOnce } from './send-once.ts'

/** What the proxy works with. */
export interface ProxyDependencies extends CallDependencies {
  /** Calls in progress, by session. */
  readonly calls: Permits
  /** Calls with a streamed body, by session: each occupies an upstream connection for as long as its browser takes. */
  readonly uploads: Permits
}

/** Far more than a page has open at once, and far fewer than the upstream connections that all sessions share. */
const MAX_CALLS = 100
const MAX_UPLOADS = 4

/**
 * Sends a call upstream and streams the response to the browser. Only a GET is ever repeated, at most once for each reason.
 * @throws Problem
 */
export function proxy(deps: ProxyDependencies, call: Call): Promise<void> {
  return withPermit(deps.calls, call.session, MAX_CALLS, () =>
    takesBody(call.endpoint) ? sendWithBody(deps, call) : sendWithRetries(deps, call, NO_BODY),
  )
}

async function sendWithBody(deps: ProxyDependencies, call: Call): Promise<void> {
  const { endpoint, request } = call
  const body = await receiveBody(request.raw, deps.http.maxBodyBytes)
  if (body === undefined) return conclude({ is: 'browserGone', sent: 'nothing', status: 0 }, call)
  try {
    // The body may have taken a while, and its user may have logged out since: nothing may be sent for them then.
    const session = CREDENTIALS[endpoint.credential].session ? await requireSession(deps, request) : undefined
    const send = (): Promise<void> => sendWithRetries(deps, { ...call, session }, body)
    await (body.is === 'whole' ? send() : withPermit(deps.uploads, session, MAX_UPLOADS, send))
  } finally {
    discard(body.content)
  }
}

/** @throws Problem rate_limited when the session has as many calls of this kind in progress as it may */
async function withPermit(
  permits: Permits,
  session: Session | undefined,
  limit: number,
  work: () => Promise<void>,
): Promise<void> {
  const key = session?.key ?? 'anonymous'
  if (!permits.acquire(key, limit)) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
  try {
    await work()
  } finally {
    permits.release(key)
  }
}

/** Repeats a GET once on a new connection if the first failed before a response, and once with a renewed token. */
async function sendWithRetries(deps: ProxyDependencies, call: Call, body: OutgoingBody): Promise<void> {
  const isSafe = call.endpoint.method === 'GET'
  let current = call
  let mayReconnect = isSafe
  let mayRenew = true
  for (;;) {
    const { request, session } = current
    const outcome = await sendOnce(deps, current, body)
    if (outcome.is === 'answered') return
    if (mayReconnect && failedBeforeResponse(outcome)) {
      mayReconnect = false
      continue
    }
    if (outcome.is === 'withheld' && outcome.status === 401 && session !== undefined) {
      const found = await deps.sessions.renewAfterRefusal(session, mayRenew, requesterOf(request))
      current = { ...call, session: authorizedSession(found, request, deps.http) }
      // Upstream refused the call, so it executed nothing. Still, only the caller may repeat an order, or a GET again.
      if (!isSafe || !mayRenew) throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
      mayRenew = false
      continue
    }
    return conclude(outcome, current)
  }
}
