import { PROBLEM_CODES } from '../problem.ts'
import { BODIES } from '../proxy/upstream-bodies.ts'
import { ref, referencesIn, TEXT, type Json } from '../proxy/document-parts.ts'

const NOW = { type: 'integer', description: "This server's clock, in seconds since 1970" }

/** The schemas of this server's own bodies, by name (docs/reference.md). */
const OWN: Readonly<Record<string, Json>> = {
  Problem: {
    type: 'object',
    description: 'A problem (RFC 9457). A request that accepts text/html gets a page with the same information.',
    required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
    properties: {
      type: { ...TEXT, description: 'An address that explains the code, without the origin' },
      title: TEXT,
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: TEXT,
      code: { type: 'string', enum: PROBLEM_CODES },
      request_id: { ...TEXT, description: 'As in X-Request-Id' },
      errors: {
        type: 'array',
        description: 'With validation_failed',
        items: { type: 'object', required: ['field', 'message'], properties: { field: TEXT, message: TEXT } },
      },
      outcome: {
        type: 'string',
        enum: ['unknown'],
        description: 'The call may have been executed: look before you repeat it',
      },
      login_url: { type: 'string', format: 'uri', description: 'With login_required and session_expired' },
      error: {
        type: 'string',
        enum: ['invalid_request'],
        description: 'On /auth/backchannel-logout: the error of OAuth',
      },
    },
  },
  Session: { anyOf: [ref('NoSession'), ref('ActiveSession')] },
  NoSession: {
    type: 'object',
    required: ['authenticated', 'now'],
    properties: { authenticated: { type: 'boolean', enum: [false] }, now: NOW, notice: ref('Notice') },
  },
  ActiveSession: {
    type: 'object',
    required: ['authenticated', 'now', 'session', 'expires_at', 'idle_expires_at', 'scope'],
    properties: {
      authenticated: { type: 'boolean', enum: [true] },
      now: NOW,
      session: { ...TEXT, description: 'Tells this session from every other; no credential' },
      expires_at: { type: 'integer', description: 'When the session ends whatever the user does' },
      idle_expires_at: { type: 'integer', description: 'When it ends unless it is used' },
      scope: TEXT,
      subject: { ...TEXT, description: 'Whose session it is, where this server has learned it' },
      claims: {
        type: 'object',
        description: 'What the ID token says of the user, with IDENTITY_CLAIMS',
        additionalProperties: { anyOf: [TEXT, { type: 'number' }, { type: 'boolean' }] },
      },
      notice: ref('Notice'),
      orders_paused: ref('OrdersPause'),
      other_sessions: {
        type: 'integer',
        minimum: 0,
        description:
          'With others=true: how many other live sessions the subject had a few seconds ago, where that is known',
      },
    },
  },
  OwnSessions: {
    type: 'object',
    required: ['sessions', 'now'],
    properties: { sessions: { type: 'array', maxItems: 100, items: ref('OwnSession') }, now: NOW },
  },
  OwnSession: {
    type: 'object',
    required: ['tag', 'started_at', 'current'],
    properties: {
      tag: { ...TEXT, description: 'Tells this session from every other; no credential' },
      started_at: { type: 'integer', description: 'When its user logged in' },
      last_used_at: { type: 'integer', description: 'Up to a minute early; absent where that is not known' },
      current: { type: 'boolean', description: 'It is the session of this request' },
      device: { ...TEXT, maxLength: 64, description: 'The browser and the system, as the browser named them' },
    },
  },
  ProviderLogout: {
    type: 'object',
    required: ['logout_url'],
    properties: { logout_url: { type: 'string', format: 'uri', description: 'The page goes there' } },
  },
  Notice: {
    type: 'object',
    description: 'What the operator tells all users. Show it as text',
    required: ['message'],
    properties: {
      message: TEXT,
      until: { type: 'integer', description: 'When it ends by itself, in seconds since 1970' },
    },
  },
  OrdersPause: {
    type: 'object',
    description: 'Orders of the user are refused at present',
    required: ['closing'],
    properties: {
      message: { ...TEXT, description: 'What the operator says about it. Show it as text' },
      until: { type: 'integer', description: 'When it ends by itself, in seconds since 1970' },
      closing: { type: 'boolean', description: 'What was bought can be sold or cancelled all the same' },
    },
  },
  PartnerLink: {
    type: 'object',
    required: ['attribution', 'verdict', 'parameters', 'return_to'],
    properties: {
      attribution: { type: 'string', enum: ['complete', 'partial', 'none'] },
      verdict: TEXT,
      parameters: { type: 'array', items: ref('PartnerLinkParameter') },
      return_to: {
        type: 'object',
        required: ['value', 'replaced'],
        properties: { value: TEXT, replaced: { type: 'boolean' } },
      },
    },
  },
  PartnerLinkParameter: {
    type: 'object',
    required: ['name', 'notes', 'explanation'],
    properties: {
      name: { type: 'string', enum: ['sidc', 'utm_campaign', 'utm_medium', 'utm_source'] },
      value: { ...TEXT, description: 'As it was decoded' },
      problem: { type: 'string', enum: ['missing', 'repeated', 'format'], description: 'Why it is ignored' },
      notes: { type: 'array', items: TEXT, description: 'Probable mistakes that are formally valid' },
      explanation: { type: 'array', items: TEXT },
    },
  },
}

/** The schemas to which a part of the document refers, and those to which they refer in turn. */
export function schemaComponents(part: Json): Json {
  const found: Record<string, Json> = {}
  const collect = (from: Json): void => {
    for (const name of referencesIn(from, 'schemas')) {
      const schema = schemaOf(name)
      if (schema === undefined || name in found) continue
      found[name] = schema
      collect(schema)
    }
  }
  collect(part)
  return found
}

/** The mark says that upstream decides the contents of the body, not this server. */
function schemaOf(name: string): Json | undefined {
  const body = (BODIES as Readonly<Record<string, Json>>)[name]
  return body === undefined ? OWN[name] : { 'x-documented-elsewhere': true, ...body }
}
