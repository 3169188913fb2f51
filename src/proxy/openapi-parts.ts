import { Problem, type ProblemCode } from '../problem.ts'

/** A part of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown }

/** The schema of any text. */
export const TEXT: Json = { type: 'string' }

/** A parameter, which is required unless it is in the query. */
export function parameter(where: 'header' | 'path' | 'query', name: string, schema: Json, about?: string) {
  return { name, in: where, required: where !== 'query', schema, description: about }
}

/** The content of a response that is a problem document. */
export const PROBLEM_CONTENT: Json = {
  'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
}

/** OpenAPI responses for these problems, one per status. */
export function problemResponses(...codes: readonly ProblemCode[]): Json {
  const responses: Record<number, { readonly description: string; readonly content: Json }> = {}
  for (const code of codes) {
    const { status, message } = new Problem(code)
    const earlier = responses[status] === undefined ? '' : `${responses[status].description} · `
    responses[status] = { description: `${earlier}\`${code}\`: ${message}`, content: PROBLEM_CONTENT }
  }
  return responses
}
