import type { ProblemCode } from '../problem.ts'
import type { Json } from '../proxy/document-parts.ts'
import { problemResponses } from './problems.ts'

/** An operation with these members needs a session. */
export const withSession = { security: [{ session: [] }] }

/** An operation, which anybody may call unless it says otherwise. */
export function operation(tag: string, operationId: string, summary: string, description: string, rest: Json): Json {
  return { operationId, summary, description, tags: [tag], security: [], ...rest }
}

/** The same for a path that has only a GET. */
export function get(...details: Parameters<typeof operation>): Json {
  return { get: operation(...details) }
}

/** The problems of these codes, and those that every route has. */
export function problems(...codes: readonly ProblemCode[]): Json {
  return problemResponses(['bad_request', ...codes, 'shutting_down', 'internal_error'])
}

/** A response that sends the browser on. */
export function redirect(description: string, headers: Json = {}): Json {
  const Location = { description: 'Where the browser goes', schema: { type: 'string', format: 'uri' } }
  return { description, headers: { Location, ...headers } }
}
