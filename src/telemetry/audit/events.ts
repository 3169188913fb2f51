import type { FieldSchema, FieldValue } from './fields.ts'
import { CALL_EVENTS } from './call-events.ts'
import { SESSION_EVENTS } from './session-events.ts'

/**
 * Every kind of audit line, by its name. Types, docs/audit.schema.json and the tests are derived from this table, so a line
 * that is not described here cannot be written.
 */
export const AUDIT_EVENTS = { ...SESSION_EVENTS, ...CALL_EVENTS } as const

/** The name of a kind of audit line. */
export type AuditName = keyof typeof AUDIT_EVENTS

type Fields<Schemas extends Readonly<Record<string, FieldSchema>>> = {
  readonly [Name in keyof Schemas]: FieldValue<Schemas[Name]>
}
type OptionalFields<Schemas extends Readonly<Record<string, FieldSchema>>> = {
  readonly [Name in keyof Schemas]?: FieldValue<Schemas[Name]> | undefined
}

/** What the caller says in an audit line of this kind. */
export type AuditFields<Name extends AuditName> = Fields<(typeof AUDIT_EVENTS)[Name]['required']> &
  OptionalFields<(typeof AUDIT_EVENTS)[Name]['optional']>
