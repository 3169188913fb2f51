import program from '../../package.json' with { type: 'json' }
import type { ProviderConfig } from '../config/provider.ts'
import type { Endpoint } from '../proxy/endpoint.ts'
import { openApiOperation, type OperationFacts } from './operation.ts'
import type { Json } from '../proxy/document-parts.ts'
import { OTHER_PATHS } from './paths.ts'
import { providerLogoutPaths } from './provider-logout-paths.ts'
import { problemSamples, responseComponents } from './problems.ts'
import { schemaComponents } from './schemas.ts'

/** The facts about a server that its document tells. */
export interface OpenApiFacts extends OperationFacts {
  readonly publicUrl: string
  readonly sessionCookie: string
  readonly oidc: ProviderConfig['oidc']
}

const TAGS = [
  { name: 'login', description: 'Logins, sign-ups, and the session that they create.' },
  {
    name: 'api',
    description:
      'Calls to the trading service, which decides what its bodies contain. Schemas that are marked `x-documented-elsewhere` say what is publicly documented of them. This server does not check it, and every object may have more fields.',
  },
  { name: 'sockets', description: 'WebSockets. Only their handshakes are described here.' },
  { name: 'meta', description: 'Explanations of this server and its errors, and its browser package.' },
]

/** The OpenAPI 3.1 document of all routes. */
export function openApiDocument(endpoints: readonly Endpoint[], facts: OpenApiFacts): Json {
  const { publicUrl } = facts
  const paths: Record<string, Json> = { ...OTHER_PATHS, ...providerLogoutPaths(facts.oidc) }
  for (const endpoint of endpoints) {
    const path = `/api${endpoint.path.replaceAll(/:(\w+)/g, '{$1}')}`
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: openApiOperation(endpoint, facts) }
  }
  const responses = responseComponents(paths)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trading backend for frontends',
      version: program.version,
      description: 'Login, REST calls and WebSocket relays for browser frontends. Tokens never reach the browser.',
      contact: { name: 'The operator of this server', url: publicUrl },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl }],
    tags: TAGS,
    paths,
    components: {
      ...components(facts),
      responses,
      examples: problemSamples(responses, publicUrl),
      schemas: schemaComponents({ paths, responses }),
    },
  }
}

function components({ sessionCookie, idempotency }: OpenApiFacts): Json {
  return {
    securitySchemes: {
      session: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'Set by a finished login' },
      csrf: {
        type: 'apiKey',
        in: 'header',
        name: 'X-CSRF',
        description: 'Always `1`. Proves that a script of an allowed page sent the request',
      },
    },
    parameters: {
      IdempotencyKey: idempotencyKey(false),
      ...(idempotency.requiredFor === 'all' || idempotency.requiredFor.size > 0
        ? { RequiredIdempotencyKey: idempotencyKey(true) }
        : {}),
    },
    headers: {
      IdempotencyReplayed: {
        description: 'The response is that of an earlier request with the same Idempotency-Key; nothing was sent',
        schema: { type: 'string', enum: ['true'] },
      },
      Challenge: {
        description: 'Of a 401 of this server: a scheme for which no browser asks its user',
        schema: { type: 'string', enum: ['Session'] },
      },
      Upgrade: { description: 'The protocol that is needed', schema: { type: 'string' } },
      RetryAfter: { description: 'Seconds to wait before the next attempt', schema: { type: 'integer' } },
    },
  }
}

function idempotencyKey(isRequired: boolean): Json {
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: isRequired,
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
    description:
      'A new text for every call, in double quotes or without. A call that is repeated with the same key is not sent again: it gets the response of the first, or a 409',
  }
}
