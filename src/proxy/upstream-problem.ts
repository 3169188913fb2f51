import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { Problem, type ProblemDetails } from '../problem.ts'
import { retryAfterMs } from '../http/retry-after.ts'
import type { FetchOutcome } from '../upstream/buffered-exchange.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import type { NoResponse } from '../upstream/no-response.ts'

/** An answer of upstream that is not passed on. */
type Withheld = { readonly is: 'withheld'; readonly status: number; readonly retryAfter?: string }

const MAX_STATUS = 599

/**
 * How a call ended, for the metrics: as the client of upstream says, but for a 5xx, which is a failure whoever gets it, and
 * for a want of file descriptors, which is not upstream's.
 */
export function upstreamOutcome(outcome: FetchOutcome | ForwardOutcome): string {
  const status = 'response' in outcome ? outcome.response.status : 'status' in outcome ? outcome.status : 0
  if (status >= 500) return 'server_error'
  if (outcome.is === 'unreachable' && isOutOfDescriptors(outcome.cause)) return 'no_descriptor'
  return outcome.is === 'withheld' ? 'held' : outcome.is
}

/**
 * What a browser may know of a call that upstream failed.
 * @param isSafe nothing can have been changed by it (GET); else the problem says where it may have been executed
 */
export function upstreamProblem(outcome: Withheld | NoResponse, isSafe: boolean): Problem {
  const unknown: ProblemDetails = isSafe ? {} : { outcome: 'unknown' }
  switch (outcome.is) {
    case 'withheld':
      return new Problem('upstream_error', { ...unknown, ...withheldDetails(outcome) })
    case 'unreachable':
      return new Problem('upstream_unreachable', { cause: outcome.cause })
    case 'lost':
      return new Problem('upstream_lost', { ...unknown, cause: outcome.cause })
    case 'timeout':
      return new Problem('upstream_timeout', { ...unknown, cause: outcome.cause })
  }
}

function withheldDetails({ status, retryAfter }: Withheld): ProblemDetails {
  if (status < 500) return { detail: 'The trading service answered with a redirect.' }
  const pauseMs = retryAfterMs(retryAfter) ?? Infinity
  return {
    // A status that HTTP does not know cannot be passed on.
    ...(status <= MAX_STATUS && { status }),
    ...(Number.isFinite(pauseMs) && { retryAfterSeconds: Math.ceil(pauseMs / 1000) }),
  }
}
