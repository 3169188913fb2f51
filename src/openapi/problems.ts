import { Problem, type ProblemCode } from '../problem.ts'
import { content, ref, referencesIn, TEXT, type Json } from '../proxy/document-parts.ts'

/** The media type of a problem (RFC 9457). */
export const PROBLEM = 'application/problem+json'
/** Why a response is what it is: a problem, or upstream itself refuses the call. */
type Cause = ProblemCode | 'upstream'

/** Begins the name of a response, which would otherwise be no identifier: several generators need one. */
const NAME = 'status_'

/**
 * A reference to the response of a status, or of all that are not listed. Its name lists the causes, and
 * {@link responseComponents} reads them from it.
 */
export function response(status: number | 'default', causes: readonly Cause[]): Json {
  return { $ref: `#/components/responses/${NAME}${[status, ...causes].join('__')}` }
}

/**
 * The responses that are these problems, by status.
 * @param others more causes of a response of this status
 */
export function problemResponses(
  codes: readonly ProblemCode[],
  others: (status: number) => readonly Cause[] = () => [],
): Json {
  const byStatus = Map.groupBy(codes, (code) => new Problem(code).status)
  const responses = [...byStatus].map(([status, same]) => {
    const causes = new Set([...same, ...others(status)])
    return [status, response(status, [...causes])]
  })
  return Object.fromEntries(responses) as Json
}

/** The responses to which these paths refer. */
export function responseComponents(paths: Json): Json {
  const responses = referencesIn(paths, 'responses').map((name) => {
    const [status = '', ...causes] = name.slice(NAME.length).split('__')
    return [name, component(status, causes as Cause[])]
  })
  return Object.fromEntries(responses) as Json
}

/** The samples to which these responses refer, by code: each is the body that the server sends. */
export function problemSamples(responses: Json, publicUrl: string): Json {
  const samples = (referencesIn(responses, 'examples') as ProblemCode[]).map((code) => {
    const needsLogin = new Problem(code).status === 401
    const problem = new Problem(code, {
      ...(needsLogin && { loginUrl: `${publicUrl}/auth/login` }),
      ...(code === 'validation_failed' && { errors: [{ field: 'start_date', message: 'is required' }] }),
    })
    return [code, { value: JSON.parse(problem.body('8f14e45f-ceea-467f-9d5c-2f1b6a0c7e11')) as Json }]
  })
  return Object.fromEntries(samples) as Json
}

function component(status: string, causes: readonly Cause[]): Json {
  const codes = causes.filter((cause) => cause !== 'upstream')
  const isRefusal = codes.length < causes.length
  const mayWait = isRefusal || codes.includes('upstream_error') || ['409', '429', '503'].includes(status)
  const descriptions = codes.map((code) => `\`${code}\`: ${new Problem(code).title}`)
  if (isRefusal) descriptions.push('The refusal of the trading service as it came')
  const headers = {
    ...(codes.length > 0 && status === '401' && { 'WWW-Authenticate': header('Challenge') }),
    ...(status === '426' && { Upgrade: header('Upgrade') }),
    ...(mayWait && { 'Retry-After': header('RetryAfter') }),
    ...(isRefusal && { 'Idempotency-Replayed': header('IdempotencyReplayed') }),
  }
  return {
    description: descriptions.join(' · '),
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      ...(codes.length > 0 && { [PROBLEM]: problemContent(status, codes) }),
      // In front of the trading service there may be a network that answers with pages.
      ...(isRefusal && { ...content('application/json', ref('Refusal')), ...content('text/html', TEXT) }),
    },
  }
}

function header(name: string): Json {
  return { $ref: `#/components/headers/${name}` }
}

function problemContent(status: string, codes: readonly ProblemCode[]): Json {
  const one = status !== 'default' && { status: { type: 'integer', enum: [Number(status)] } }
  const properties = { code: { type: 'string', enum: codes }, ...one }
  // The sample of a code has its usual status.
  const samples = codes.filter((code) => String(new Problem(code).status) === status)
  return {
    schema: { allOf: [ref('Problem'), { type: 'object', properties }] },
    examples: Object.fromEntries(samples.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
  }
}
