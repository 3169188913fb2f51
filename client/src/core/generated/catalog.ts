// Generated from the server's own tables by `npm run build:client`. Do not edit.

import type {
  AgentsBody,
  AccountList,
  ExistingAccount,
  NewAccount,
  NewAccountRequest,
  OptionsBody,
  BulkPurchase,
  WalletList,
  WalletsBody,
  AgentList,
  AgentBody,
  TransferRequest,
  WithdrawalRequest,
  VerificationCodeRequest,
} from './bodies.ts'

/**
 * The paths of the trading service that the server serves below `/api`, by method. Each has the type of the JSON in its
 * response as far as it is publicly documented; `never` means that the response is a text.
 */
export interface Responses {
  readonly GET: {
    readonly '/v1/health': never
    readonly '/account/v1/nickname': AgentsBody
    readonly '/trading/v1/options/accounts': AccountList
    readonly '/wallet/v1/wallets': WalletList
    readonly [path: `/wallet/v1/transactions/${string}`]: WalletsBody
    readonly '/applications/v1/markup-statistics': unknown
    readonly '/payment-agents/v1/clients/me': AgentsBody
    readonly '/payment-agents/v1/agents': AgentList
    readonly [path: `/payment-agents/v1/agents/${string}`]: AgentBody
    readonly '/payment-agents/v1/agent-statistics': AgentsBody
    readonly [path: `/payment-agents/v1/transfer/${string}`]: AgentsBody
    readonly [path: `/payment-agents/v1/withdraw/${string}`]: AgentsBody
  }
  readonly POST: {
    readonly '/trading/v1/options/accounts': ExistingAccount | NewAccount
    readonly [path: `/trading/v1/options/accounts/${string}/reset-demo-balance`]: OptionsBody
    readonly '/trading/v1/options/contracts/bulk-purchase/real': OptionsBody
    readonly '/trading/v1/options/contracts/bulk-purchase/demo': OptionsBody
    readonly '/payment-agents/v1/transfer': AgentsBody
    readonly '/payment-agents/v1/withdraw': AgentsBody
    readonly '/payment-agents/v1/withdraw/verification_code': AgentsBody
  }
  readonly PATCH: {
    readonly '/payment-agents/v1/clients/me': AgentsBody
  }
}

/**
 * The JSON that these paths expect, by method, as far as it is publicly documented. If the trading service knows more members than
 * a type has, add them by declaration merging.
 */
export interface Requests {
  readonly POST: {
    readonly '/trading/v1/options/accounts': NewAccountRequest
    readonly [path: `/trading/v1/options/accounts/${string}/reset-demo-balance`]: unknown
    readonly '/trading/v1/options/contracts/bulk-purchase/real': BulkPurchase
    readonly '/trading/v1/options/contracts/bulk-purchase/demo': BulkPurchase
    readonly '/payment-agents/v1/transfer': TransferRequest
    readonly '/payment-agents/v1/withdraw': WithdrawalRequest
    readonly '/payment-agents/v1/withdraw/verification_code': VerificationCodeRequest
  }
  readonly PATCH: {
    readonly '/payment-agents/v1/clients/me': unknown
  }
}

/** The `code` of a problem. A newer server may send others. */
export type ProblemCode =
  | 'login_required'
  | 'session_expired'
  | 'csrf_rejected'
  | 'origin_rejected'
  | 'navigation_required'
  | 'not_found'
  | 'method_not_allowed'
  | 'upgrade_required'
  | 'validation_failed'
  | 'bad_request'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'subject_unknown'
  | 'current_session'
  | 'rate_limited'
  | 'upstream_budget'
  | 'upstream_limit'
  | 'idempotency_key_required'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'
  | 'outcome_unknown'
  | 'answer_not_kept'
  | 'upstream_error'
  | 'upstream_unreachable'
  | 'upstream_lost'
  | 'upstream_timeout'
  | 'credential_renewed'
  | 'provider_unavailable'
  | 'orders_paused'
  | 'session_store_unavailable'
  | 'shutting_down'
  | 'internal_error'

/** The close codes of the server itself. Any other comes from the trading service or from the network. */
export type CloseCode =
  | 1009
  | 1011
  | 1012
  | 1013
  | 4401
  | 4403
  | 4404
  | 4408
  | 4429

/** The close reasons of the server itself, without `;retry_after=`. */
export type CloseReason =
  | 'login_required'
  | 'session_expired'
  | 'upstream_error'
  | 'not_found'
  | 'slow_consumer'
  | 'too_many_relays'
  | 'rate_limited'
  | 'upstream_budget'
  | 'upstream_limit'
  | 'message_too_big'
  | 'internal_error'
  | 'shutting_down'
  | 'provider_unavailable'
  | 'session_store_unavailable'
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'upstream_lost'
