import type { FastifyBaseLogger } from 'fastify'
import { BoundedLines } from '../bounded-lines.ts'
import { CALL_EVENTS } from './call-events.ts'
import type { FieldSchema, FieldValue } from './fields.ts'
import { SESSION_EVENTS } from './session-events.ts'

/**
 * Every kind of audit line, by its name. Types, docs/audit.schema.json and the tests are derived from this table, so a line
 * that is not described here cannot be written.
 */
export const AUDIT_EVENTS = { ...SESSION_EVENTS, ...CALL_EVENTS } as const

/** The name of a kind of audit line. */
type AuditName = keyof typeof AUDIT_EVENTS

type Fields<Schemas extends Readonly<Record<string, FieldSchema>>> = {
  readonly [Name in keyof Schemas]: FieldValue<Schemas[Name]>
}
type OptionalFields<Schemas extends Readonly<Record<string, FieldSchema>>> = {
  readonly [Name in keyof Schemas]?: FieldValue<Schemas[Name]> | undefined
}

/** The fields that the caller of an audit line of this kind gives. */
export type AuditFields<Name extends AuditName> = Fields<(typeof AUDIT_EVENTS)[Name]['required']> &
  OptionalFields<(typeof AUDIT_EVENTS)[Name]['optional']>

/** The kinds of lines that a stranger can cause at will, so that one may stand for several events. */
type BoundedName = {
  [Name in AuditName]: 'count' extends keyof AuditFields<Name> ? Name : never
}[AuditName]

/** How a line differs from the usual ones of its kind. */
interface Emphasis {
  readonly level?: 'info' | 'warn' | 'error'
  readonly message?: string
}

const bounded = new BoundedLines({ atOnce: 5, everyMs: 10_000 })

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

/**
 * Like `audit`, but a stranger cannot fill the log: after a few lines of a source within ten seconds, the next one is written
 * when that time is over, with the `count` of events that it stands for.
 * @param source the name under which events are counted together: the network of a client, for instance
 */
export function auditBounded<Name extends BoundedName>(
  log: FastifyBaseLogger,
  name: Name,
  fields: AuditFields<Name>,
  source: string,
  emphasis?: Emphasis,
): void {
  const write = (count: number): void => audit(log, name, count > 1 ? { ...fields, count } : fields, emphasis)
  bounded.add(log, { id: `${name}|${source}`, write }, { id: name, write })
}
