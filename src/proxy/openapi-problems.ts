import { Problem, type ProblemCode } from '../problem.ts'

/** A part of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown }

/** OpenAPI responses for these problems, one per status. */
export function problemResponses(...codes: readonly ProblemCode[]): Json {
  const byStatus = new Map<number, Problem[]>()
  for (const code of codes) {
    const problem = new Problem(code)
    byStatus.set(problem.status, [...(byStatus.get(problem.status) ?? []), problem])
  }
  return Object.fromEntries([...byStatus].map(([status, problems]) => [status, response(problems)]))
}

function response(problems: readonly Problem[]): Json {
  return {
    description: problems.map(({ code, message }) => `\`${code}\`: ${message}`).join(' · '),
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  }
}
