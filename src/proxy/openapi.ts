import { PROBLEM_CODES } from '../problem.ts'
import { CREDENTIALS, ID, takesBody, type Endpoint } from './endpoint.ts'
import { parameter, problemResponses, TEXT, type Json } from './openapi-parts.ts'
import { OTHER_PATHS } from './openapi-paths.ts'

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
      description: 'Login, REST calls and WebSocket relays for browser frontends. Tokens never reach the browser.',
    },
    servers: [{ url: facts.publicUrl }],
    paths,
    components: components(facts),
  }
}

function operation(endpoint: Endpoint, { maxBodyBytes }: OpenApiFacts): Json {
  const { path, credential, summary, query } = endpoint
  const hasBody = takesBody(endpoint)
  const hasSession = CREDENTIALS[credential].session
  return {
    operationId: operationId(endpoint),
    tags: ['api'],
    summary,
    description: howItIsSent(endpoint),
    parameters: [
      { $ref: '#/components/parameters/Csrf' },
      ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
        const { source } = endpoint.parameters?.[name] ?? ID
        return parameter('path', name, { type: 'string', pattern: source })
      }),
      ...(query?.parameters ?? []),
    ],
    requestBody: hasBody
      ? {
          description: `Passed on as it comes, up to ${maxBodyBytes} bytes.`,
          required: credential === 'pat',
          content: { '*/*': { schema: {} } },
        }
      : undefined,
    security: hasSession ? [{ session: [] }] : undefined,
    responses: responses(hasBody, hasSession),
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
  const unavailable = ['session_store_unavailable', 'shutting_down'] as const
  return {
    '2XX': passedOn("The trading service's answer as it came"),
    '304': { description: 'Not modified' },
    '4XX': passedOn("The trading service's refusal as it came, or a problem of this server"),
    '5XX': passedOn("A problem; `upstream_error` has the trading service's own status"),
    ...problemResponses('bad_request', 'validation_failed', 'csrf_rejected', 'not_found', 'method_not_allowed'),
    ...(hasBody && problemResponses('body_too_large', 'unsupported_media_type')),
    ...problemResponses('upstream_error', 'upstream_unreachable', 'upstream_lost', 'upstream_timeout'),
    ...problemResponses('shutting_down', 'internal_error'),
    // The 503 of a call with a session has more causes, so it replaces the one above.
    ...(hasSession && problemResponses('login_required', 'session_expired', 'rate_limited')),
    ...(hasSession && problemResponses('credential_renewed', 'provider_unavailable', ...unavailable)),
  }
}

function passedOn(description: string): Json {
  return { description, content: { '*/*': { schema: {} } } }
}

/** `GET /payment-agents/v1/agents/:id` → `getPaymentAgentsV1AgentsById`. */
function operationId({ method, path }: Endpoint): string {
  const words = path.replaceAll(':', 'by-').split(/[^A-Za-z0-9]+/)
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function components({ sessionCookie }: OpenApiFacts): Json {
  return {
    securitySchemes: {
      session: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'Set by a finished login' },
    },
    parameters: {
      Csrf: parameter(
        'header',
        'X-CSRF',
        { type: 'string', const: '1' },
        'Proves that a script of an allowed page sent the request',
      ),
    },
    schemas: {
      Problem: {
        type: 'object',
        description: 'RFC 9457',
        required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
        properties: {
          type: { type: 'string', format: 'uri-reference' },
          title: TEXT,
          status: { type: 'integer', minimum: 400, maximum: 599 },
          detail: TEXT,
          code: { type: 'string', enum: PROBLEM_CODES },
          request_id: TEXT,
          errors: {
            type: 'array',
            items: {
              type: 'object',
              required: ['field', 'message'],
              properties: { field: TEXT, message: TEXT },
            },
          },
          outcome: { const: 'unknown', description: 'It may have been executed: look before repeating it' },
          login_url: { type: 'string', format: 'uri' },
        },
      },
    },
  }
}
