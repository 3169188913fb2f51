import { PROBLEM_CODES } from '../problem.ts'
import { CREDENTIALS, ID, takesBody, type Endpoint } from './endpoint.ts'
import { OTHER_PATHS } from './openapi-paths.ts'
import { problemResponses, type Json } from './openapi-problems.ts'

/** What the document needs to know of the server. */
export interface OpenApiFacts {
  readonly publicUrl: string
  readonly sessionCookie: string
  readonly maxBodyBytes: number
}

/** Version of this server's own interface: its routes and errors, not upstream's responses. */
const INTERFACE_VERSION = '1.0.0'

/** The OpenAPI 3.1 document of all routes. The schemas of upstream's bodies are open, since upstream does not document them. */
export function openApiDocument(endpoints: readonly Endpoint[], facts: OpenApiFacts): Json {
  const paths: Record<string, Json> = { ...OTHER_PATHS }
  for (const endpoint of endpoints) {
    const path = `/api${endpoint.path.replaceAll(/:(\w+)/g, '{$1}')}`
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, facts) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trading backend for frontends',
      version: INTERFACE_VERSION,
      description:
        'Login, REST calls and WebSocket relays for browser frontends. Tokens never reach the browser.',
    },
    servers: [{ url: facts.publicUrl }],
    paths,
    components: components(facts),
  }
}

function operation(endpoint: Endpoint, facts: OpenApiFacts): Json {
  const { path, credential, summary, query } = endpoint
  const hasBody = takesBody(endpoint)
  const { session } = CREDENTIALS[credential]
  const parameters = [
    { $ref: '#/components/parameters/Csrf' },
    ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => pathParameter(endpoint, name)),
    ...(query?.parameters ?? []).map(({ name, description, format }) => {
      const schema = { type: 'string', format }
      return { name, in: 'query', required: true, description, schema }
    }),
  ]
  return {
    operationId: operationId(endpoint),
    tags: ['api'],
    ...{ summary, description: howItIsSent(endpoint), parameters },
    ...(hasBody && {
      requestBody: {
        description: `Passed on as it comes, up to ${facts.maxBodyBytes} bytes.`,
        required: credential === 'pat',
        content: { '*/*': { schema: {} } },
      },
    }),
    ...(session && { security: [{ session: [] }] }),
    responses: responses(hasBody, session),
  }
}

function howItIsSent({ credential, isShared }: Endpoint): string {
  if (isShared) {
    return 'The same response for everybody, asked for once in a while; the query is not passed on.'
  }
  switch (credential) {
    case 'bearer':
      return "Sent upstream with the session's token."
    case 'pat':
      return 'Sent upstream with no token but those in the body.'
    case 'none':
      return 'Sent upstream without a token.'
  }
}

function responses(hasBody: boolean, hasSession: boolean): Json {
  const passedOn = { content: { '*/*': { schema: {} } } }
  return {
    '2XX': { description: "The trading service's answer as it came", ...passedOn },
    '304': { description: 'Not modified' },
    '4XX': {
      description: "The trading service's refusal as it came, or a problem of this server",
      ...passedOn,
    },
    '5XX': { description: "A problem; `upstream_error` has the trading service's own status", ...passedOn },
    ...problemResponses(
      ...(['bad_request', 'validation_failed', 'csrf_rejected', 'not_found', 'method_not_allowed'] as const),
      ...(hasBody ? (['body_too_large', 'unsupported_media_type'] as const) : []),
      ...(hasSession
        ? (['login_required', 'session_expired', 'rate_limited', 'credential_renewed'] as const)
        : []),
      ...(['upstream_error', 'upstream_unreachable', 'upstream_lost', 'upstream_timeout'] as const),
      ...(hasSession ? (['provider_unavailable', 'session_store_unavailable'] as const) : []),
      ...(['shutting_down', 'internal_error'] as const),
    ),
  }
}

function pathParameter({ parameters }: Endpoint, name: string): Json {
  const pattern = (parameters?.[name] ?? ID).source
  return { name, in: 'path', required: true, schema: { type: 'string', pattern } }
}

/** `GET /payment-agents/v1/agents/:id` → `getPaymentAgentsV1AgentsById`. */
function operationId({ method, path }: Endpoint): string {
  const words = path.replaceAll(':', 'by-').split(/[^A-Za-z0-9]+/)
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function components({ sessionCookie }: OpenApiFacts): Json {
  const text = { type: 'string' }
  return {
    securitySchemes: {
      session: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'Set by a finished login' },
    },
    parameters: {
      Csrf: {
        ...{ name: 'X-CSRF', in: 'header', required: true, schema: { type: 'string', const: '1' } },
        description: 'Proves that a script of an allowed page sent the request',
      },
    },
    schemas: {
      Problem: {
        type: 'object',
        description: 'RFC 9457',
        required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
        properties: {
          type: { type: 'string', format: 'uri-reference' },
          title: text,
          status: { type: 'integer', minimum: 400, maximum: 599 },
          detail: text,
          code: { type: 'string', enum: PROBLEM_CODES },
          request_id: text,
          errors: {
            type: 'array',
            items: {
              type: 'object',
              required: ['field', 'message'],
              properties: { field: text, message: text },
            },
          },
          outcome: { const: 'unknown', description: 'It may have been executed: look before repeating it' },
          login_url: { type: 'string', format: 'uri' },
        },
      },
    },
  }
}
