import { ref, TEXT, type Json } from './document-parts.ts'
import { REQUEST_BODIES } from './request-bodies.ts'

/** An object of which no field is documented. */
const OPEN: Json = { type: 'object', additionalProperties: true }

/**
 * The schemas of upstream's bodies and of their parts, by name (docs/upstream.md, Bodies). They say no more than the public
 * documentation of this family of services, and every object may have more fields. They are for the tools of frontend
 * developers: this server itself reads no body.
 */
export const BODIES = {
  Health: { ...TEXT, description: '`OK`' },

  OptionsBody: options({}),
  AccountList: options(listOf('Account')),
  ExistingAccount: options(ref('Account')),
  NewAccount: options(listOf('Account')),
  Account: {
    ...record('A trading account', {
      account_id: { ...TEXT, description: 'Its id, for paths and sockets' },
      account_type: { ...TEXT, description: '`demo` or `real`' },
      currency: { ...TEXT, description: 'A code of ISO 4217' },
      balance: ref('Amount'),
    }),
    required: ['account_id'],
  },

  AgentsBody: agents({}),
  AgentBody: agents(ref('Agent')),
  AgentList: agents(listOf('Agent')),
  Agent: record('A payment agent', {}),

  WalletsBody: wallets({}),
  WalletList: wallets(listOf('Wallet')),
  Wallet: record('A wallet', { balance: ref('Amount') }),

  PartnerOverview: { ...OPEN, description: 'The overview, without an envelope' },

  RequestBody: { ...OPEN, description: 'The fields that the trading service expects' },
  ...REQUEST_BODIES,

  Refusal: {
    type: 'object',
    description: 'A refusal of the trading service',
    properties: { errors: listOf('RefusalReason'), meta: ref('Meta'), metadata: OPEN },
  },
  RefusalReason: record('Why the trading service refuses a call. It may send codes that nobody documents.', {
    status: { type: 'integer' },
    code: TEXT,
    message: TEXT,
    field: TEXT,
  }),
  Meta: record('About the call', { endpoint: TEXT, method: TEXT, timing: { type: 'number' } }),
  Amount: { anyOf: [{ type: 'number' }, TEXT], description: 'A number, or the same in a string' },
} as const satisfies Readonly<Record<string, Json>>

/** The name of a body of upstream, or of a part of one. */
export type BodyName = keyof typeof BODIES

/** The media type of a body. */
export function mediaTypeOf(name: BodyName): 'application/json' | 'text/plain' {
  return name === 'Health' ? 'text/plain' : 'application/json'
}

/** The envelope of accounts and contracts. */
function options(data: Json): Json {
  return envelope('A response about accounts or contracts', { data, meta: ref('Meta') })
}

/** The envelope of payment agents and of the nickname. */
function agents(data: Json): Json {
  const rest = { errors: listOf('RefusalReason'), metadata: OPEN }
  return envelope('A response about payment agents or the nickname', { data, ...rest })
}

/** The envelope of wallets. */
function wallets(data: Json): Json {
  return envelope('A response about wallets', { data, links: OPEN })
}

function envelope(description: string, properties: Json): Json {
  return { type: 'object', description, required: ['data'], properties }
}

function record(description: string, properties: Json): Json {
  return { ...OPEN, description, properties }
}

function listOf(name: string): Json {
  return { type: 'array', items: ref(name) }
}
