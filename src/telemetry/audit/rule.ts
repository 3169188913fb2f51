import type { FieldSchema } from './fields.ts'

/** One kind of audit line (docs/audit.md). */
export interface AuditRule {
  /** Unless a line is more serious than usual. */
  readonly level: 'info' | 'warn'
  /** The usual `msg`. */
  readonly message: string
  /** What has happened, as a sentence for docs/audit.md. */
  readonly description: string
  /** True if the line is written with the logger of a request, which adds `reqId`. */
  readonly inRequest: boolean
  readonly required: Readonly<Record<string, FieldSchema>>
  readonly optional: Readonly<Record<string, FieldSchema>>
}
