import type { FieldError } from '../problem.ts'
import type { QueryRule } from './endpoint.ts'
import type { Json } from './json-schema.ts'

const DAY_MS = 86_400_000

/** A reporting period of at most `maxDays`; both dates are inclusive (docs/upstream.md, Endpoints). */
export function reportingPeriod(startName: string, endName: string, maxDays: number): QueryRule {
  const check = (query: string): readonly FieldError[] => {
    const parameters = new URLSearchParams(query)
    const errors: FieldError[] = []
    const start = readDate(parameters, startName, errors)
    const end = readDate(parameters, endName, errors)
    if (start === undefined || end === undefined) return errors
    if (end < start) errors.push({ field: endName, message: `must be on or after ${startName}` })
    else if (end - start > maxDays * DAY_MS) {
      errors.push({ field: endName, message: `must be at most ${maxDays} days after ${startName}` })
    }
    return errors
  }
  const endRule = `on or after ${startName} and at most ${maxDays} days after it`
  return {
    check,
    parameters: [
      dateParameter(startName, 'First day of the reporting period'),
      dateParameter(endName, `Last day of the reporting period, ${endRule}`),
    ],
  }
}

function dateParameter(name: string, description: string): Json {
  return { name, in: 'query', required: true, description, schema: { type: 'string', format: 'date' } }
}

function readDate(parameters: URLSearchParams, field: string, errors: FieldError[]): number | undefined {
  const refuse = (message: string): undefined => void errors.push({ field, message })
  const [value, ...more] = parameters.getAll(field)
  if (value === undefined) return refuse('is required')
  if (more.length > 0) return refuse('must be given once')
  return isCalendarDate(value) ? Date.parse(value) : refuse('must be a calendar date, YYYY-MM-DD')
}

/** Whether the day exists: Date.parse alone would accept 2026-02-30 as the second of March. */
function isCalendarDate(value: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value)) return false
  const time = Date.parse(value)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(value)
}
