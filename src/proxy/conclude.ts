import { callerOnAccount } from '../http/requester.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { Stale } from '../upstream/exchange.ts'
import type { ForwardOutcome } from '../upstream/forwarding.ts'
import type { Call } from './call.ts'
import { upstreamProblem } from './upstream-problem.ts'

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
