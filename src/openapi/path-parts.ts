import type { ProblemCode } from '../problem.ts'
import type { Json } from '../proxy/document-parts.ts'
import { problemResponses } from './problems.ts'

/** An operation, which anybody may call unless it says otherwise. */
export function operation(tag: string, operationId: string, summary: string, description: string, rest: Json): Json {
  return { operationId, summary, description, tags: [tag], security: [], ...rest }
}

/** A GET. */
export function get(...details: Parameters<typeof operation>): Json {
  return { get: operation(...details) }
}

/** The problems of these codes, and those that every route has. */
export function problems(...codes: readonly ProblemCode[]): Json {
  return problemResponses(['bad_request', ...codes, 'shutting_down', 'internal_error'])
}
