import { readFileSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { AUDIT_EVENTS } from '../../../src/telemetry/audit/audit.ts'
import type { AuditRule, FieldSchema } from '../../../src/telemetry/audit/fields.ts'

const FILE = fileURLToPath(new URL('../../../docs/audit.schema.json', import.meta.url))
const GUIDE = fileURLToPath(new URL('../../../docs/audit.md', import.meta.url))

/** The part of JSON Schema in which audit lines are described. */
export type Schema = FieldSchema | { readonly const: string } | { readonly enum: readonly number[] } | ObjectSchema

/** The schema of an object with known members only. */
export interface ObjectSchema {
  readonly title?: string
  readonly description?: string
  readonly type: 'object'
  readonly properties: Readonly<Record<string, Schema>>
  readonly required: readonly string[]
  readonly additionalProperties: false
}

/** The document that docs/audit.schema.json holds. */
export interface AuditSchema {
  readonly $defs: Readonly<Record<string, ObjectSchema>>
  readonly [keyword: string]: unknown
}

/** All kinds of audit lines, by their names. */
const auditRules: Readonly<Record<string, AuditRule>> = AUDIT_EVENTS

/** What a line says beside the fields of its kind. */
const COMMON = {
  level: {
    description: '30 for what is expected, 40 for what to look at, 50 for what only you can correct',
    enum: [30, 40, 50],
  },
  time: {
    description: 'RFC 3339, in UTC',
    type: 'string',
    pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  },
  instance: {
    description: 'The process that wrote the line, as GET /controls names it: host, process id, and a word',
    type: 'string',
    pattern: '^[^/]+/\\d+/[0-9a-f]{6}$',
  },
  version: { description: 'The version of the server', type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+' },
  msg: { description: 'The same in words', type: 'string', maxLength: 200 },
  worker: { description: 'The number of the worker, with WORKERS above 1', type: 'integer', minimum: 0 },
  trace_id: {
    description: 'The trace of the request that caused the event, where there are traces',
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
  },
  span_id: { description: 'The span of that request', type: 'string', pattern: '^[0-9a-f]{16}$' },
} as const

const ERROR: ObjectSchema = {
  title: 'An error',
  type: 'object',
  properties: {
    type: { description: 'The name of the kind of error', type: 'string' },
    code: { description: 'Its code, if it has one', type: 'string' },
    message: { description: 'At most 500 characters, unless it is a fault of this server', type: 'string' },
    stack: { description: 'Where it arose. Only for faults of this server', type: 'string' },
    cause: { description: 'The error behind it', $ref: '#/$defs/error' },
  },
  required: ['type', 'message'],
  additionalProperties: false,
}

/** The JSON Schema of every audit line, as docs/audit.schema.json holds it. */
export function auditSchema(): AuditSchema {
  const kinds = Object.entries(auditRules).map(([name, rule]) => [name, kindSchema(name, rule)] as const)
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Audit lines of trading-bff',
    description: 'One line of the log that has a field `audit`. docs/audit.md explains each kind.',
    oneOf: kinds.map(([name]) => ({ $ref: `#/$defs/${name}` })),
    $defs: { ...Object.fromEntries(kinds), error: ERROR },
  }
  return document
}

/** The table of docs/audit.md: the kinds with their fields. What each field means is in the schema alone. */
export function auditTable(): string {
  const rows = Object.entries(auditSchema().$defs).flatMap(([kind, { properties, required, description }]) => {
    if (kind === 'error') return []
    const own = Object.keys(properties).filter((name) => name === 'reqId' || !(name in COMMON || name === 'audit'))
    const names = own.map((name) => (required.includes(name) ? `\`${name}\`` : `(\`${name}\`)`))
    return [`| \`${kind}\` | ${description} | ${names.join(', ')} |`]
  })
  return ['| `audit` | When | Fields; in parentheses: where known |', '|---|---|---|', ...rows].join('\n')
}

/** The committed document. */
export function committedSchema(): AuditSchema {
  return JSON.parse(readFileSync(FILE, 'utf8')) as AuditSchema
}

function kindSchema(name: string, { description, inRequest, required, optional }: AuditRule): ObjectSchema {
  const { level, time, instance, version, msg, worker, trace_id, span_id } = COMMON
  const request = AUDIT_EVENTS.relay_opened.required.reqId
  return {
    title: name,
    description,
    type: 'object',
    properties: {
      level,
      time,
      instance,
      version,
      worker,
      ...(inRequest && { reqId: request }),
      audit: { const: name },
      ...required,
      ...optional,
      trace_id,
      span_id,
      msg,
    },
    required: [
      'level',
      'time',
      'instance',
      'version',
      'audit',
      'msg',
      ...(inRequest ? ['reqId'] : []),
      ...Object.keys(required),
    ],
    additionalProperties: false,
  }
}

if (import.meta.main) {
  writeFileSync(FILE, `${JSON.stringify(auditSchema(), undefined, 2)}\n`)
  execFileSync('npx', ['oxfmt', FILE], { stdio: 'inherit' })
  const guide = readFileSync(GUIDE, 'utf8')
  const table = auditTable()
  const [head = ''] = table.split('\n', 1)
  const old = guide.slice(guide.indexOf(head)).split('\n\n', 1)[0] ?? ''
  writeFileSync(
    GUIDE,
    guide.replace(old, () => table),
  )
}
