import type { FieldError } from '../problem.ts'
import type { QueryRule } from './endpoint.ts'
import type { Json } from './document-parts.ts'

const START = 'start_date'
const END = 'end_date'
const MAX_DAYS = 730
const DAY_MS = 86_400_000

/** A reporting period of at most 730 days; both dates are inclusive (docs/upstream.md, Endpoints). */
export const REPORTING_PERIOD: QueryRule = {
  check(query) {
    // URLSearchParams would skip a `?` of the query itself, which is part of the first name.
    const parameters = new URLSearchParams(`?${query}`)
    const errors: FieldError[] = []
    const start = readDate(parameters, START, errors)
    const end = readDate(parameters, END, errors)
    if (start === undefined || end === undefined) return errors
    if (end < start) return [{ field: END, message: `must be on or after ${START}` }]
    if (end - start <= MAX_DAYS * DAY_MS) return []
    return [{ field: END, message: `must be at most ${MAX_DAYS} days after ${START}` }]
  },
  parameters: [
    dateParameter(START, 'First day of the reporting period'),
    dateParameter(END, `Last day of the reporting period, on or after ${START} and at most ${MAX_DAYS} days after it`),
  ],
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
