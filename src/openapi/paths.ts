import { PROBLEM_CODES } from '../problem.ts'
import { ID } from '../http/known-paths.ts'
import { content, parameter, ref, TEXT, type Json } from '../proxy/document-parts.ts'
import { get, operation, problems, redirect, withSession } from './own-operation.ts'
import { OWN_SESSION_PATHS } from './own-session-paths.ts'
import { PROBLEM, problemResponses } from './problems.ts'

const returnTo = parameter(
  'query',
  'return_to',
  { type: 'string', maxLength: 2048 },
  "Path of the frontend's own origin to come back to; anything else is replaced by /",
)

const attribution = [
  parameter('query', 'sidc', { type: 'string', format: 'uuid' }, 'Tracking session'),
  parameter('query', 'utm_source', { type: 'string', maxLength: 128 }, 'Affiliate id'),
  parameter('query', 'utm_medium', { type: 'string', enum: ['affiliate'] }, 'Always affiliate'),
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
    description: 'What is valid, but probably a mistake, e.g. `utm_campaign=plus,return_to=replaced`',
    schema: TEXT,
  },
}
const attributionValues = {
  description: 'The valid values, decoded: a JSON object',
  schema: TEXT,
}

const TO_PROVIDER = 'To the login page of the provider; a failure goes back to the frontend'
const page = content('text/html', TEXT)

function socket(operationId: string, summary: string, description: string, rest: Json): Json {
  const isTrading = 'parameters' in rest
  return get('sockets', operationId, summary, description, {
    ...rest,
    responses: {
      '101': { description: 'The socket is open, or a close frame with the reason follows at once' },
      ...problemResponses(['bad_request', 'origin_rejected', ...(isTrading ? (['not_found'] as const) : [])]),
      ...problemResponses(['upgrade_required', 'internal_error']),
    },
  })
}

function script(operationId: string, summary: string, contents: string): Json {
  return get('meta', operationId, summary, 'An ES module for pages without a bundler.', {
    responses: {
      '200': { description: contents, content: content('text/javascript', TEXT) },
      '304': { description: 'Not modified' },
      ...problems(),
    },
  })
}

/** The routes outside the catalog (docs/reference.md, Routes). A test compares them with the routes of the server. */
export const OTHER_PATHS: Readonly<Record<string, Json>> = {
  '/auth/login': get('login', 'login', 'Start a login', 'Only for navigations of the browser window.', {
    parameters: [returnTo],
    responses: { '303': redirect(TO_PROVIDER), ...problems('navigation_required') },
  }),
  '/auth/signup': {
    ...get(
      'login',
      'signup',
      'Start a sign-up',
      "Only for navigations of the browser window. Partners' links lead here.",
      {
        parameters: [returnTo, ...attribution],
        responses: { '303': redirect(TO_PROVIDER, attributionHeaders), ...problems('navigation_required') },
      },
    ),
    head: operation(
      'login',
      'checkPartnerLink',
      'Check a partner link',
      'Starts nothing, so `curl -I` checks a link.',
      {
        parameters: attribution,
        responses: {
          '200': {
            description: 'What the link carries',
            headers: { ...attributionHeaders, 'X-Attribution-Values': attributionValues },
          },
          '400': { description: 'The request is malformed' },
        },
      },
    ),
  },
  '/auth/signup/check': get(
    'login',
    'explainPartnerLink',
    'Explain a partner link',
    'Says in words whether a link is right. Starts nothing.',
    {
      parameters: [returnTo, ...attribution],
      responses: {
        '200': {
          description: 'What the link carries: a page for a client that accepts HTML, else JSON',
          headers: attributionHeaders,
          content: { ...content('application/json', ref('PartnerLink')), ...page },
        },
        ...problems(),
      },
    },
  ),
  '/auth/callback': get(
    'login',
    'callback',
    'Finish a login',
    'The provider sends browsers here. Each login is finished once.',
    {
      parameters: [
        parameter('query', 'code', TEXT, 'On success'),
        parameter('query', 'state', TEXT, 'Names the login transaction'),
        parameter('query', 'error', TEXT, 'On failure'),
        parameter('query', 'error_description', TEXT, 'For the log, never shown'),
      ],
      responses: {
        '303': redirect('To the frontend, with auth_error if it failed'),
        ...problems('navigation_required'),
      },
    },
  ),
  '/auth/session': {
    ...get('login', 'getSession', 'Who is logged in, and until when', 'Asking does not prolong an idle session.', {
      security: [{}, { session: [] }],
      parameters: [parameter('query', 'others', { type: 'string', enum: ['true'] }, 'Adds other_sessions')],
      responses: {
        '200': { description: 'Never a token', content: content('application/json', ref('Session')) },
        ...problems('validation_failed', 'session_store_unavailable'),
      },
    }),
    post: operation(
      'login',
      'extendSession',
      'Prolong the session',
      'For a user who is here without calling anything.',
      {
        ...withSession,
        responses: {
          '204': {
            description: 'The session ends no earlier than before, and later if its idle limit was due',
          },
          ...problems('login_required', 'csrf_rejected', 'session_store_unavailable'),
        },
      },
    ),
  },
  ...OWN_SESSION_PATHS,
  '/auth/logout': {
    post: operation('login', 'logout', 'Log out', 'Ends the session on all instances, and closes its sockets.', {
      security: [{ csrf: [] }, { session: [], csrf: [] }],
      parameters: [
        parameter('query', 'everywhere', { type: 'string', enum: ['true'] }, 'Ends all sessions of the subject'),
        parameter(
          'query',
          'provider',
          { type: 'string', enum: ['true'] },
          'Asks where to log out at the provider, too',
        ),
      ],
      responses: {
        '200': {
          description: 'The same, with `provider=true` and a provider at which browsers can log out',
          content: content('application/json', ref('ProviderLogout')),
        },
        '204': { description: 'There is no session any more, whether or not there was one' },
        ...problems(
          'validation_failed',
          'csrf_rejected',
          'subject_unknown',
          'rate_limited',
          'session_store_unavailable',
        ),
      },
    }),
  },
  '/ws/public': socket('publicRelay', 'Market data', 'A WebSocket that needs no login.', {}),
  '/ws/trading/{accountId}': socket('tradingRelay', 'Trading', 'A WebSocket for an account of the user.', {
    ...withSession,
    parameters: [parameter('path', 'accountId', { type: 'string', pattern: ID.source }, 'Id of the account')],
  }),
  '/ws/session': socket(
    'sessionSocket',
    'The session, its changes and its end',
    'A WebSocket that pushes what `GET /auth/session` says.',
    withSession,
  ),
  '/client.js': script('getClient', 'The browser package', 'createClient and its types of error'),
  '/client/orders.js': script(
    'getClientOrders',
    'A part of the browser package',
    'fate, and what once loads by itself',
  ),
  '/client/series.js': script(
    'getClientSeries',
    'A part of the browser package',
    'series, which sockets load by themselves',
  ),
  '/client/sessions.js': script('getClientSessions', 'A part of the browser package', 'listSessions and endSession'),
  '/problems/{code}': get('meta', 'explainProblem', 'Explain a problem', 'Says what a code means, and what to do.', {
    parameters: [parameter('path', 'code', { type: 'string', enum: PROBLEM_CODES }, 'The code of the problem')],
    responses: {
      '200': {
        description: 'A page for a client that accepts HTML, else the problem with an explanation as its detail',
        content: { ...content(PROBLEM, ref('Problem')), ...page },
      },
      ...problems('not_found'),
    },
  }),
  '/asyncapi.json': get('meta', 'getAsyncApi', 'The messages of the sockets', 'Describes the WebSockets.', {
    responses: {
      '200': { description: 'AsyncAPI 3', content: content('application/json', { type: 'object' }) },
      ...problems(),
    },
  }),
  '/openapi.json': get('meta', 'getOpenApi', 'This document', 'Lists all routes of this server.', {
    responses: {
      '200': { description: 'OpenAPI 3.1', content: content('application/json', { type: 'object' }) },
      ...problems(),
    },
  }),
}
