import type { FastifyReply } from 'fastify'
import { ownHeaders } from '../../http/base-headers.ts'
import { Problem } from '../../problem.ts'
import { responseHeaders } from '../../upstream/headers.ts'
import type { Call, CallDependencies } from '../call.ts'
import { auditKeyed } from './audit-keyed.ts'
import type { Repetition } from './idempotency-records.ts'
import type { KeptAnswer } from './record.ts'

/** How long a page should wait for the first call to finish. */
const IN_PROGRESS_SECONDS = 1
/** The session's keys last for hours, so there is no use in trying again soon. */
const TOO_MANY_SECONDS = 60

/** Answers a call that is not sent, as a rule from the record of the first call with its key. @throws Problem */
export function repeatCall(
  claimed: Repetition,
  call: Call,
  { metrics, upstream }: Pick<CallDependencies, 'metrics' | 'upstream'>,
): void {
  const audit = (outcome: Parameters<typeof auditKeyed>[2]): void => auditKeyed(metrics, call, outcome)
  switch (claimed.is) {
    case 'answered':
      audit('replayed')
      return sendAnswer(call.reply, claimed.answer, upstream.budget !== undefined, true)
    case 'running':
      audit('in_progress')
      throw new Problem('idempotency_in_progress', { retryAfterSeconds: IN_PROGRESS_SECONDS })
    case 'unknown':
      audit('repeated_unknown')
      throw new Problem('outcome_unknown', { outcome: 'unknown' })
    case 'not_kept':
      audit('repeated_not_kept')
      throw new Problem('answer_not_kept', {
        outcome: 'unknown',
        detail: `The first call was answered with the status ${claimed.status}. The response was not kept.`,
      })
    case 'otherCall':
      audit('key_reused')
      throw new Problem('idempotency_key_reused')
    case 'tooMany':
      audit('too_many')
      throw new Problem('rate_limited', {
        retryAfterSeconds: TOO_MANY_SECONDS,
        detail: 'This session has used too many Idempotency-Keys.',
      })
  }
}

/** Sends a response that was received whole. @param isReplayed whether it belongs to an earlier request */
export function sendAnswer(
  reply: FastifyReply,
  { status, headers, body }: KeptAnswer,
  hasBudget: boolean,
  isReplayed = false,
): void {
  const list = responseHeaders(status, ownHeaders(reply), headers, hasBudget)
  if (isReplayed) list.push('idempotency-replayed', 'true')
  const response = reply.raw.writeHead(status, list)
  // From now on nobody else answers, so nothing may fail any more.
  reply.hijack()
  response.end(body)
}
