import { callerOnAccount } from '../http/requester.ts'
import { retryAfterMs } from '../http/retry-after.ts'
import { Problem, type ProblemDetails } from '../problem.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { OverBudget } from '../upstream/budget/admission.ts'
import type { FetchOutcome } from '../upstream/buffered-exchange.ts'
import type { Stale } from '../upstream/first-byte.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import type { NoResponse } from '../upstream/no-response.ts'
import type { Call } from './call.ts'

/** A response of upstream that the browser does not get. */
type Withheld = { readonly is: 'withheld'; readonly status: number; readonly retryAfter?: string }

const MAX_STATUS = 599
/** Statuses on which browsers send a call again on another connection, by themselves: a POST, too (RFC 9110 §15.5.9, §15.5.20). */
const REPEATED_ON = new Set([408, 421])

/** Whether a response of this status stays here: server errors, whose text may tell too much, and redirects. */
export function isWithheld(status: number): boolean {
  return status >= 500 || (status >= 300 && status < 400 && status !== 304)
}

/** Whether browsers would send a call again, even an order, if they got a response of this status. */
export function isRepeatedOn(status: number): boolean {
  return REPEATED_ON.has(status)
}

/**
 * How a call ended, as a metric label. Running out of file descriptors is not upstream's failure. `limited` and `refused` are
 * a 429 of upstream and another 4xx that were passed on, `held` is one that was withheld; a call that only this server refused is none
 * of them.
 */
export function upstreamOutcome(outcome: FetchOutcome | ForwardOutcome): string {
  const status = 'response' in outcome ? outcome.response.status : 'status' in outcome ? outcome.status : 0
  if (status >= 500) return 'server_error'
  if (outcome.is === 'unreachable' && isOutOfDescriptors(outcome.cause)) return 'no_descriptor'
  if (outcome.is === 'withheld') return 'held'
  if (outcome.is === 'cut' || status < 400) return outcome.is
  return status === 429 ? 'limited' : 'refused'
}

/** Finishes a call whose response was not forwarded completely. @throws Problem where the browser can still be answered */
export function conclude(
  outcome: Exclude<ForwardOutcome, { is: 'answered' } | Stale>,
  { endpoint, request, reply }: Call,
): void {
  const { method, path: route } = endpoint
  const isSafe = method === 'GET'
  switch (outcome.is) {
    case 'bodyRefused':
      throw outcome.problem
    case 'cut':
      if (!reply.sent) throw upstreamProblem({ is: 'lost', cause: outcome.cause, responseBegan: true }, isSafe)
      logFailure(request.log, 'upstream broke off its response', { method, route }, outcome.cause)
      return
    case 'browserGone':
      if (!isSafe) {
        const { status, sent, cause } = outcome
        audit(request.log, 'browser_left', { method, route, sent, status, cause, ...callerOnAccount(request) })
      }
      reply.hijack()
      return
    case 'withheld':
    case 'unreachable':
    case 'lost':
    case 'timeout':
    case 'overBudget':
      throw upstreamProblem(outcome, isSafe)
  }
}

/**
 * The problem that a browser gets for a call that upstream failed.
 * @param isSafe the call was a GET and can have changed nothing; of any other the problem says that its outcome is unknown, where it is
 */
export function upstreamProblem(outcome: Withheld | NoResponse | OverBudget, isSafe: boolean): Problem {
  const unknown: ProblemDetails = isSafe ? {} : { outcome: 'unknown' }
  switch (outcome.is) {
    case 'withheld':
      return new Problem('upstream_error', { ...unknown, ...withheldDetails(outcome) })
    case 'unreachable':
      return new Problem('upstream_unreachable', { cause: outcome.cause })
    case 'lost':
      return new Problem('upstream_lost', { ...unknown, cause: outcome.cause })
    case 'overBudget':
      return new Problem(outcome.limited === 'user' ? 'upstream_limit' : 'upstream_budget', {
        retryAfterSeconds: Math.ceil(outcome.retryAfterMs / 1000),
      })
    case 'timeout':
      return new Problem('upstream_timeout', { ...unknown, cause: outcome.cause })
  }
}

function withheldDetails({ status, retryAfter }: Withheld): ProblemDetails {
  if (isRepeatedOn(status)) {
    return { detail: `The trading service answered ${status}, on which browsers would send the call again.` }
  }
  if (status < 500) return { detail: 'The trading service answered with a redirect.' }
  const pauseMs = retryAfterMs(retryAfter) ?? Infinity
  return {
    // HTTP ends at 599: a higher status cannot be sent on.
    ...(status <= MAX_STATUS && { status }),
    ...(Number.isFinite(pauseMs) && { retryAfterSeconds: Math.ceil(pauseMs / 1000) }),
  }
}
