import type { Config } from '../config/config.ts'
import type { ProblemCode } from '../problem.ts'
import { ID } from '../http/known-paths.ts'
import { CREDENTIALS, changesSomething, type Endpoint } from '../proxy/endpoint.ts'
import { requiresKey } from '../proxy/idempotency/key-header.ts'
import { content, parameter, ref, type Json } from '../proxy/document-parts.ts'
import { problemResponses, response } from './problems.ts'
import { mediaTypeOf, type BodyName } from '../proxy/upstream-bodies.ts'

/** The settings on which the description of an operation depends. */
export interface OperationFacts {
  readonly maxBodyBytes: number
  readonly idempotency: Pick<Config['idempotency'], 'requiredFor' | 'maxBodyBytes'>
}

const SHARED = 'The same response for everybody, asked for once in a while; the query is not passed on.'
/** How a call is sent, by credential policy. */
const SENT: Readonly<Record<Endpoint['credential'], string>> = {
  bearer: "Sent upstream with the session's token.",
  pat: 'Sent upstream with no token but those in the body.',
  none: 'Sent upstream without a token.',
}

/** The OpenAPI operation of an endpoint of the catalog. */
export function openApiOperation(endpoint: Endpoint, { maxBodyBytes, idempotency }: OperationFacts): Json {
  const { path, credential, summary, query, isShared, request = 'RequestBody' } = endpoint
  const isChange = changesSomething(endpoint)
  const needsKey = isChange && requiresKey(endpoint, idempotency)
  const keyParameter = needsKey ? 'RequiredIdempotencyKey' : 'IdempotencyKey'
  return {
    operationId: operationId(endpoint),
    tags: ['api'],
    summary,
    description: isShared ? SHARED : SENT[credential],
    parameters: [
      ...(isChange ? [{ $ref: `#/components/parameters/${keyParameter}` }] : []),
      ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
        const { source } = endpoint.parameters?.[name] ?? ID
        return parameter('path', name, { type: 'string', pattern: source }, 'Checked before anything is sent upstream')
      }),
      ...(query?.parameters ?? []),
    ],
    requestBody: isChange
      ? {
          description: `Passed on as it comes, up to ${maxBodyBytes} bytes (${Math.min(maxBodyBytes, idempotency.maxBodyBytes)} with an Idempotency-Key), with its Content-Type, which may be another one.`,
          required: endpoint.request !== undefined,
          content: content(mediaTypeOf(request), ref(request)),
        }
      : undefined,
    security: [CREDENTIALS[credential].session ? { session: [], csrf: [] } : { csrf: [] }],
    responses: { ...successes(endpoint), ...failures(endpoint, needsKey) },
  }
}

function successes(endpoint: Endpoint): Json {
  const { method, response: body } = endpoint
  const bodies = typeof body === 'object' ? body : { 200: body, ...(method === 'POST' && { 201: body }) }
  const headers = changesSomething(endpoint) && {
    headers: { 'Idempotency-Replayed': { $ref: '#/components/headers/IdempotencyReplayed' } },
  }
  const responses = Object.entries(bodies).map(([status, name]) => [status, { ...passedOn(name), ...headers }])
  return {
    ...(Object.fromEntries(responses) as Json),
    ...(method === 'GET' && { '304': { description: 'Not modified' } }),
  }
}

function passedOn(name: BodyName | undefined): Json {
  return {
    description: "The trading service's answer as it came",
    content: name === undefined ? content('*/*', {}) : content(mediaTypeOf(name), ref(name)),
  }
}

function failures(endpoint: Endpoint, needsKey: boolean): Json {
  const { bearer } = CREDENTIALS[endpoint.credential]
  return {
    ...problemResponses(problemsOf(endpoint, needsKey), (status) => {
      if (status >= 500) return ['upstream_error']
      // A 401 to the session's token is not passed on.
      return status === 401 && bearer ? [] : ['upstream']
    }),
    ...(changesSomething(endpoint) && { '408': response(408, ['bad_request', 'upstream']) }),
    default: response('default', ['upstream_error', 'upstream']),
  }
}

/** The problems that a call can get. */
function problemsOf(endpoint: Endpoint, needsKey: boolean): readonly ProblemCode[] {
  const { session, bearer } = CREDENTIALS[endpoint.credential]
  const isChange = changesSomething(endpoint)
  return [
    'bad_request',
    ...where(needsKey, 'idempotency_key_required'),
    ...where(endpoint.query !== undefined, 'validation_failed'),
    ...where(session, 'login_required', 'session_expired'),
    'csrf_rejected',
    ...where(endpoint.path.includes(':'), 'not_found'),
    ...where(isChange, 'body_too_large', 'unsupported_media_type', 'idempotency_in_progress', 'outcome_unknown'),
    ...where(isChange, 'answer_not_kept', 'idempotency_key_reused'),
    'rate_limited',
    'upstream_budget',
    ...where(session, 'upstream_limit'),
    'internal_error',
    'upstream_error',
    'upstream_unreachable',
    'upstream_lost',
    ...where(bearer, 'credential_renewed'),
    ...where(isChange, 'orders_paused'),
    ...where(session, 'provider_unavailable', 'session_store_unavailable'),
    'shutting_down',
    'upstream_timeout',
  ]
}

function where(applies: boolean, ...codes: readonly ProblemCode[]): readonly ProblemCode[] {
  return applies ? codes : []
}

/** `GET /payment-agents/v1/agents/:id` → `getPaymentAgentsV1AgentsById`. */
function operationId({ method, path }: Endpoint): string {
  const words = path.replaceAll(':', 'by-').split(/[^A-Za-z0-9]+/)
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
