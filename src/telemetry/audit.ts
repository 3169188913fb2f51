import type { FastifyBaseLogger } from 'fastify'
import { AUDIT_EVENTS, type AuditFields, type AuditName } from './audit/events.ts'

/** How a line differs from the usual ones of its kind. */
interface Emphasis {
  readonly level?: 'info' | 'warn' | 'error'
  readonly message?: string
}

/**
 * Writes an audit line (docs/audit.md). The types admit only what the schema of its kind describes.
 * @param log that of the request if the kind is `inRequest`
 */
export function audit<Name extends AuditName>(
  log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>,
  name: Name,
  fields: AuditFields<Name>,
  { level = AUDIT_EVENTS[name].level, message = AUDIT_EVENTS[name].message }: Emphasis = {},
): void {
  const line: object = { audit: name, ...fields }
  log[level](line, message)
}
