import { PROBLEM_CODES } from '../problem.ts'
import { ID } from './endpoint.ts'
import { parameter, PROBLEM_CONTENT, problemResponses, TEXT, type Json } from './openapi-parts.ts'

const returnTo = parameter(
  'query',
  'return_to',
  { type: 'string', maxLength: 2048 },
  "Path of the frontend's own origin to come back to; anything else is replaced by /",
)

const attribution = [
  parameter('query', 'sidc', { type: 'string', format: 'uuid' }, 'Tracking session'),
  parameter('query', 'utm_source', { type: 'string', maxLength: 128 }, 'Affiliate id'),
  parameter('query', 'utm_medium', { type: 'string', const: 'affiliate' }, 'Always affiliate'),
  parameter('query', 'utm_campaign', { type: 'string', maxLength: 128 }, 'Campaign name'),
]

const attributionHeaders = {
  'X-Attribution': {
    description: 'How complete the partner link is',
    schema: { type: 'string', enum: ['complete', 'partial', 'none'] },
  },
  'X-Attribution-Problems': {
    description: 'What is missing or wrong in a partial link, e.g. `sidc=format,utm_medium=missing`',
    schema: TEXT,
  },
  'X-Attribution-Notes': {
    description: 'What is valid and yet hardly meant, e.g. `utm_campaign=plus,return_to=replaced`',
    schema: TEXT,
  },
}
const attributionValues = {
  description: 'The values that count, as they were decoded: a JSON object',
  schema: TEXT,
}

const withoutSlash = {
  summary: 'The same without the slash',
  tags: ['login'],
  responses: { '308': { description: 'To /auth/signup, with the same query' } },
}

const navigation = problemResponses('navigation_required', 'method_not_allowed', 'shutting_down')
const toProvider = { description: 'To the login page of the provider; a failure goes back to the frontend' }

const now = { type: 'integer', description: 'Epoch seconds' }
const sessionState = {
  oneOf: [
    {
      type: 'object',
      required: ['authenticated', 'now'],
      properties: { authenticated: { const: false }, now },
    },
    {
      type: 'object',
      required: ['authenticated', 'now', 'expires_at', 'idle_expires_at', 'scope'],
      properties: {
        authenticated: { const: true },
        now,
        expires_at: { type: 'integer', description: 'When the session ends whatever the user does' },
        idle_expires_at: { type: 'integer', description: 'When it ends unless it is used' },
        scope: TEXT,
      },
    },
  ],
}

function operation(tag: string, operationId: string, summary: string, rest: Json): Json {
  return { operationId, summary, tags: [tag], ...rest }
}

function get(...details: Parameters<typeof operation>): Json {
  return { get: operation(...details) }
}

function json(schema: Json): Json {
  return { 'application/json': { schema } }
}

function relay(operationId: string, summary: string, rest?: Json): Json {
  return get('relays', operationId, summary, {
    description: 'A WebSocket. After the handshake refusals come as close codes, the reason is the problem code.',
    ...rest,
    responses: {
      '101': { description: 'Joined to the trading service, or closed at once with the reason' },
      ...problemResponses('origin_rejected', 'upgrade_required', 'not_found', 'method_not_allowed'),
    },
  })
}

/** The routes outside the catalog (docs/reference.md, Routes). A test compares them with the routes of the server. */
export const OTHER_PATHS: Readonly<Record<string, Json>> = {
  '/auth/login': get('login', 'login', 'Start a login', {
    parameters: [returnTo],
    responses: { '303': toProvider, ...navigation },
  }),
  '/auth/signup': {
    ...get('login', 'signup', 'Start a sign-up; partner links lead here', {
      parameters: [returnTo, ...attribution],
      responses: { '303': { ...toProvider, headers: attributionHeaders }, ...navigation },
    }),
    head: operation('login', 'checkPartnerLink', 'Check a partner link; starts nothing', {
      parameters: attribution,
      responses: {
        '200': {
          description: 'What the link carries',
          headers: { ...attributionHeaders, 'X-Attribution-Values': attributionValues },
        },
      },
    }),
  },
  '/auth/signup/check': get('login', 'explainPartnerLink', 'Whether a partner link is right, in words', {
    parameters: [returnTo, ...attribution],
    responses: {
      '200': {
        description: 'What the link carries: a page for who accepts HTML, else JSON',
        headers: attributionHeaders,
        content: { ...json({ type: 'object' }), 'text/html': {} },
      },
      ...problemResponses('method_not_allowed', 'shutting_down'),
    },
  }),
  '/auth/signup/': {
    get: { ...withoutSlash, operationId: 'signupWithoutSlash' },
    head: { ...withoutSlash, operationId: 'checkPartnerLinkWithoutSlash' },
  },
  '/auth/callback': get('login', 'callback', "The provider's redirect back", {
    parameters: [
      parameter('query', 'code', TEXT, 'On success'),
      parameter('query', 'state', TEXT, 'Names the login transaction'),
      parameter('query', 'error', TEXT, 'On failure'),
      parameter('query', 'error_description', TEXT, 'For the log, never shown'),
    ],
    responses: { '303': { description: 'To the frontend, with auth_error if it failed' }, ...navigation },
  }),
  '/auth/session': {
    ...get('login', 'getSession', 'Who is logged in, and until when', {
      description: 'Asking does not prolong an idle session.',
      responses: {
        '200': { description: 'Never a token', content: json(sessionState) },
        ...problemResponses('method_not_allowed', 'session_store_unavailable', 'shutting_down'),
      },
    }),
    post: operation('login', 'extendSession', 'The user is here: prolongs the session', {
      parameters: [{ $ref: '#/components/parameters/Csrf' }],
      responses: {
        '204': {
          description: 'The session ends no earlier than before, and later if its idle limit was due',
        },
        ...problemResponses('csrf_rejected', 'login_required', 'method_not_allowed'),
        ...problemResponses('session_store_unavailable', 'shutting_down'),
      },
    }),
  },
  '/auth/logout': {
    post: operation('login', 'logout', 'End the session everywhere', {
      parameters: [{ $ref: '#/components/parameters/Csrf' }],
      responses: {
        '204': { description: 'There is no session any more, whether or not there was one' },
        ...problemResponses('csrf_rejected', 'method_not_allowed', 'rate_limited'),
        ...problemResponses('session_store_unavailable', 'shutting_down'),
      },
    }),
  },
  '/ws/public': relay('publicRelay', 'Market data, no login'),
  '/ws/trading/{accountId}': relay('tradingRelay', 'Authenticated trading on an account', {
    parameters: [parameter('path', 'accountId', { type: 'string', pattern: ID.source })],
    security: [{ session: [] }],
  }),
  '/ws/session': relay('sessionSocket', 'The state of the session, its changes and its end', {
    security: [{ session: [] }],
  }),
  '/client.js': get('meta', 'getClient', 'The browser package, as an ES module', {
    responses: {
      '200': { description: 'createClient and its types of error', content: { 'text/javascript': {} } },
      '304': { description: 'Not modified' },
      ...problemResponses('method_not_allowed', 'shutting_down'),
    },
  }),
  '/problems/{code}': get('meta', 'explainProblem', 'What a problem means, and what to do', {
    parameters: [parameter('path', 'code', { type: 'string', enum: PROBLEM_CODES })],
    responses: {
      '200': {
        description: 'A page for who accepts HTML, else the problem with an explanation as its detail',
        content: { ...PROBLEM_CONTENT, 'text/html': {} },
      },
      ...problemResponses('not_found', 'method_not_allowed', 'shutting_down'),
    },
  }),
  '/openapi.json': get('meta', 'getOpenApi', 'This document', {
    responses: {
      '200': { description: 'OpenAPI 3.1', content: json({ type: 'object' }) },
      ...problemResponses('method_not_allowed', 'shutting_down'),
    },
  }),
}
