import { ref, TEXT, type Json } from './document-parts.ts'

const AMOUNT: Json = { ...TEXT, description: 'A decimal number in a text', examples: ['10.00'] }
const CURRENCY: Json = { ...TEXT, description: 'A code of ISO 4217', examples: ['USD'] }
const NOTES: Json = { ...TEXT, description: 'A text for the statement' }
const AGENT: Json = { type: 'integer', description: 'The id of the payment agent' }
const ID = '1 to 128 letters, digits, `_` and `-`, new for each'

/**
 * The schemas of the bodies that upstream expects, and of their parts, by name (docs/upstream.md, Bodies). They name every member
 * that is publicly documented, so that a misspelt one can be found, but do not forbid others.
 */
export const REQUEST_BODIES = {
  NewAccountRequest: object('An account to open. One that exists is returned', {
    currency: CURRENCY,
    group: { ...TEXT, description: 'The group of accounts', examples: ['row'] },
    account_type: { type: 'string', enum: ['demo', 'real'] },
  }),

  BulkPurchase: object('A contract, and the accounts to buy it for', {
    contract_parameters: {
      type: 'object',
      description: 'What to buy, as in a `proposal`. The trading service checks it',
      additionalProperties: true,
    },
    accounts: {
      type: 'array',
      description: 'At most 100. An account that is there twice buys twice',
      items: ref('BulkPurchaseAccount'),
    },
  }),
  BulkPurchaseAccount: object('An account of a bulk purchase', {
    token: { ...TEXT, description: 'A Personal Access Token of its owner, with the scope `trade`' },
    account_id: TEXT,
  }),

  TransferRequest: object('A transfer in its envelope', { data: ref('Transfer') }),
  Transfer: object(
    'A transfer from a payment agent to a client',
    { to_nickname: { ...TEXT, description: 'The nickname of the client' }, amount: AMOUNT, currency: CURRENCY },
    { notes: NOTES, request_id: { ...TEXT, description: `${ID} transfer: one that was used before is refused` } },
  ),

  VerificationCodeRequest: object('The withdrawal that a code is for, in its envelope', {
    data: ref('PlannedWithdrawal'),
  }),
  PlannedWithdrawal: object('A withdrawal that needs a code', {
    agent_id: AGENT,
    amount: AMOUNT,
    currency: CURRENCY,
  }),
  WithdrawalRequest: object('A withdrawal in its envelope', { data: ref('Withdrawal') }),
  Withdrawal: object(
    'A withdrawal of a client through a payment agent',
    {
      agent_id: AGENT,
      amount: AMOUNT,
      currency: CURRENCY,
      verification_code: { ...TEXT, description: 'The six digits that the client was sent' },
    },
    {
      notes: NOTES,
      request_id: { ...TEXT, description: `${ID} withdrawal: its status can be asked for by this id` },
    },
  ),
} as const satisfies Readonly<Record<string, Json>>

function object(description: string, required: Json, optional: Json = {}): Json {
  return { type: 'object', description, required: Object.keys(required), properties: { ...required, ...optional } }
}
