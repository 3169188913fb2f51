import type { Test } from 'tap'
import { committedSchema, type ObjectSchema, type Schema } from './audit-schema.ts'

let kinds: Readonly<Record<string, ObjectSchema>> | undefined

/** Fails the test when the log of a server has an audit line that docs/audit.schema.json does not describe. */
export function scanAudit(t: Pick<Test, 'fail'>, text: string): void {
  for (const line of auditLines(text)) {
    const faults = auditFaults(line)
    // This runs in a teardown, where an exception would skip the other teardowns.
    if (faults.length > 0) t.fail('an audit line does not fit docs/audit.schema.json', { line, faults })
  }
}

/** The audit lines of a log. The last line of a process that was killed may be incomplete. */
function auditLines(text: string): Record<string, unknown>[] {
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}') && line.includes('"audit":'))
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/**
 * What is wrong with an audit line, by docs/audit.schema.json. It reads as much of JSON Schema as that document uses: loading
 * a whole validator would cost each test file a tenth of a second. A test compares the two.
 */
export function auditFaults(line: Readonly<Record<string, unknown>>): string[] {
  kinds ??= committedSchema().$defs
  const name = line['audit']
  const kind = typeof name === 'string' && name !== 'error' && Object.hasOwn(kinds, name) ? kinds[name] : undefined
  return kind === undefined ? [`unknown kind ${String(name)}`] : faultsOf(kind, line, '')
}

function faultsOf(schema: Schema, value: unknown, path: string): string[] {
  if ('const' in schema) return value === schema.const ? [] : [`${path} is not ${schema.const}`]
  if ('enum' in schema)
    return (schema.enum as readonly unknown[]).includes(value) ? [] : [`${path} is not one of its values`]
  if ('$ref' in schema) return faultsOf((kinds ?? {})['error'] as ObjectSchema, value, path)
  switch (schema.type) {
    case 'object':
      return objectFaults(schema, value, path)
    case 'string': {
      if (typeof value !== 'string') return [`${path} is no string`]
      // JSON Schema counts code points.
      const { pattern, maxLength = Infinity } = schema
      if (Array.from(value).length > maxLength) return [`${path} is too long`]
      return pattern === undefined || new RegExp(pattern, 'u').test(value) ? [] : [`${path} does not match`]
    }
    case 'integer':
    case 'number': {
      const isNumber = typeof value === 'number' && (schema.type === 'number' || Number.isInteger(value))
      const maximum = 'maximum' in schema ? (schema.maximum ?? Infinity) : Infinity
      return isNumber && value >= schema.minimum && value <= maximum ? [] : [`${path} is no such number`]
    }
  }
}

function objectFaults({ properties, required }: ObjectSchema, value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [`${path} is no object`]
  const members = value as Readonly<Record<string, unknown>>
  const missing = required.filter((name) => !(name in members)).map((name) => `${path}/${name} is missing`)
  const wrong = Object.entries(members).flatMap(([name, member]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    return schema === undefined ? [`${path}/${name} is not described`] : faultsOf(schema, member, `${path}/${name}`)
  })
  return [...missing, ...wrong]
}
