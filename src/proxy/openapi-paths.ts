import { PROBLEM_CODES } from '../problem.ts'
import { ID } from './endpoint.ts'
import { problemResponses, type Json } from './openapi-problems.ts'

const returnTo = queryParameter(
  'return_to',
  { type: 'string', maxLength: 2048 },
  "Path of the frontend's own origin to come back to; anything else is replaced by /",
)

const attribution = [
  queryParameter('sidc', { type: 'string', format: 'uuid' }, 'Tracking session'),
  queryParameter('utm_source', { type: 'string', maxLength: 128 }, 'Affiliate id'),
  queryParameter('utm_medium', { type: 'string', const: 'affiliate' }, 'Always affiliate'),
  queryParameter('utm_campaign', { type: 'string', maxLength: 128 }, 'Campaign name'),
]

const attributionHeaders = {
  'X-Attribution': {
    description: 'How complete the partner link is',
    schema: { type: 'string', enum: ['complete', 'partial', 'none'] },
  },
  'X-Attribution-Problems': {
    description: 'What is missing or wrong in a partial link, e.g. `sidc=format,utm_medium=missing`',
    schema: { type: 'string' },
  },
  'X-Attribution-Notes': {
    description: 'What is valid and yet hardly meant, e.g. `utm_campaign=plus,return_to=replaced`',
    schema: { type: 'string' },
  },
}
const attributionValues = {
  'X-Attribution-Values': {
    description: 'The values that count, as they were decoded: a JSON object',
    schema: { type: 'string' },
  },
}

const withoutSlash = {
  ...{ summary: 'The same without the slash', tags: ['login'] },
  responses: { '308': { description: 'To /auth/signup, with the same query' } },
}

const navigation = problemResponses('navigation_required', 'method_not_allowed', 'shutting_down')
const toProvider = { description: 'To the login page of the provider; a failure goes back to the frontend' }

const sessionState = {
  type: 'object',
  required: ['authenticated', 'now'],
  properties: {
    authenticated: { type: 'boolean' },
    now: { type: 'integer', description: 'Epoch seconds' },
    expires_at: { type: 'integer', description: 'When the session ends whatever the user does' },
    idle_expires_at: { type: 'integer', description: 'When it ends unless it is used' },
    scope: { type: 'string' },
  },
}

function queryParameter(name: string, schema: Json, description: string): Json {
  return { name, in: 'query', required: false, schema, description }
}

function relay(summary: string, operationId: string, more: Json): Json {
  return {
    get: {
      ...{ operationId, summary, tags: ['relays'] },
      description:
        'A WebSocket. After the handshake refusals come as close codes, the reason is the problem code.',
      ...more,
      responses: {
        '101': { description: 'Joined to the trading service, or closed at once with the reason' },
        ...problemResponses('origin_rejected', 'upgrade_required', 'not_found', 'method_not_allowed'),
      },
    },
  }
}

/** The routes outside the catalog (docs/reference.md, Routes). A test compares them with the routes of the server. */
export const OTHER_PATHS: Readonly<Record<string, Json>> = {
  '/auth/login': {
    get: {
      ...{ operationId: 'login', summary: 'Start a login', tags: ['login'], parameters: [returnTo] },
      responses: { '303': toProvider, ...navigation },
    },
  },
  '/auth/signup': {
    get: {
      ...{ operationId: 'signup', summary: 'Start a sign-up; partner links lead here', tags: ['login'] },
      parameters: [returnTo, ...attribution],
      responses: { '303': { ...toProvider, headers: attributionHeaders }, ...navigation },
    },
    head: {
      ...{
        operationId: 'checkPartnerLink',
        summary: 'Check a partner link; starts nothing',
        tags: ['login'],
      },
      parameters: attribution,
      responses: {
        '200': {
          description: 'What the link carries',
          headers: { ...attributionHeaders, ...attributionValues },
        },
      },
    },
  },
  '/auth/signup/check': {
    get: {
      ...{
        operationId: 'explainPartnerLink',
        summary: 'Whether a partner link is right, in words',
        tags: ['login'],
      },
      parameters: [returnTo, ...attribution],
      responses: {
        '200': {
          description: 'What the link carries: a page for who accepts HTML, else JSON',
          headers: attributionHeaders,
          content: { 'application/json': { schema: { type: 'object' } }, 'text/html': {} },
        },
        ...problemResponses('method_not_allowed', 'shutting_down'),
      },
    },
  },
  '/auth/signup/': {
    get: { ...withoutSlash, operationId: 'signupWithoutSlash' },
    head: { ...withoutSlash, operationId: 'checkPartnerLinkWithoutSlash' },
  },
  '/auth/callback': {
    get: {
      ...{ operationId: 'callback', summary: "The provider's redirect back", tags: ['login'] },
      parameters: [
        queryParameter('code', { type: 'string' }, 'On success'),
        queryParameter('state', { type: 'string' }, 'Names the login transaction'),
        queryParameter('error', { type: 'string' }, 'On failure'),
        queryParameter('error_description', { type: 'string' }, 'For the log, never shown'),
      ],
      responses: { '303': { description: 'To the frontend, with auth_error if it failed' }, ...navigation },
    },
  },
  '/auth/session': {
    get: {
      ...{ operationId: 'getSession', summary: 'Who is logged in, and until when', tags: ['login'] },
      description: 'Asking does not prolong an idle session.',
      responses: {
        '200': { description: 'Never a token', content: { 'application/json': { schema: sessionState } } },
        ...problemResponses('method_not_allowed', 'session_store_unavailable', 'shutting_down'),
      },
    },
  },
  '/auth/logout': {
    post: {
      ...{ operationId: 'logout', summary: 'End the session everywhere', tags: ['login'] },
      parameters: [{ $ref: '#/components/parameters/Csrf' }],
      responses: {
        '204': { description: 'There is no session any more, whether or not there was one' },
        ...problemResponses(
          ...(['csrf_rejected', 'method_not_allowed', 'rate_limited'] as const),
          ...(['session_store_unavailable', 'shutting_down'] as const),
        ),
      },
    },
  },
  '/ws/public': relay('Market data, no login', 'publicRelay', {}),
  '/ws/trading/{accountId}': relay('Authenticated trading on an account', 'tradingRelay', {
    parameters: [
      { name: 'accountId', in: 'path', required: true, schema: { type: 'string', pattern: ID.source } },
    ],
    security: [{ session: [] }],
  }),
  '/problems/{code}': {
    get: {
      ...{ operationId: 'explainProblem', summary: 'What a problem means, and what to do', tags: ['meta'] },
      parameters: [
        { name: 'code', in: 'path', required: true, schema: { type: 'string', enum: PROBLEM_CODES } },
      ],
      responses: {
        '200': {
          description: 'A page for who accepts HTML, else the problem with an explanation as its detail',
          content: {
            'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
            'text/html': {},
          },
        },
        ...problemResponses('not_found', 'method_not_allowed', 'shutting_down'),
      },
    },
  },
  '/openapi.json': {
    get: {
      ...{ operationId: 'getOpenApi', summary: 'This document', tags: ['meta'] },
      responses: {
        '200': {
          description: 'OpenAPI 3.1',
          content: { 'application/json': { schema: { type: 'object' } } },
        },
        ...problemResponses('method_not_allowed', 'shutting_down'),
      },
    },
  },
}
