import { callerOnAccount } from '../../http/requester.ts'
import { audit, type AuditFields } from '../../telemetry/audit/audit.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Call } from '../call.ts'
import type { Ending } from './claim.ts'

/** An outcome that is logged for the audit. The others are the usual ones, and are only counted. */
type AuditedOutcome = AuditFields<'idempotency'>['outcome']

const MESSAGES: Readonly<Record<AuditedOutcome, string>> = {
  unknown: 'the outcome of a call with an Idempotency-Key is unknown',
  replayed: 'a repeated call got the response of the first',
  in_progress: 'a repeated call was refused while the first runs',
  repeated_unknown: 'a repeated call was refused, because the outcome of the first is unknown',
  repeated_not_kept: 'a repeated call was refused, because the response of the first was not kept',
  key_reused: 'another call with a used Idempotency-Key was refused',
  too_many: 'a call was refused, because its session has used too many Idempotency-Keys',
  record_lost: 'the record of a call with an Idempotency-Key was replaced or lost while the call ran',
}

/** Counts the outcome of a request with a key, and logs it for the audit. Neither the key nor the body is ever logged. */
export function auditKeyed(
  metrics: Pick<Metrics, 'idempotency'>,
  { endpoint, request }: Call,
  outcome: Ending | AuditedOutcome,
): void {
  metrics.idempotency.inc({ outcome })
  if (!isAudited(outcome)) return
  const { method, path: route } = endpoint
  const level = outcome === 'replayed' ? 'info' : 'warn'
  audit(
    request.log,
    'idempotency',
    { outcome, method, route, ...callerOnAccount(request) },
    { level, message: MESSAGES[outcome] },
  )
}

function isAudited(outcome: string): outcome is AuditedOutcome {
  return outcome in MESSAGES
}
