/** The paths of the trading service that the server serves below `/api`, by method. */
export interface Paths {
    GET: '/v1/health' | '/account/v1/nickname' | '/trading/v1/options/accounts' | '/wallet/v1/wallets' | `/wallet/v1/transactions/${string}` | '/applications/v1/markup-statistics' | '/payment-agents/v1/clients/me' | '/payment-agents/v1/agents' | `/payment-agents/v1/agents/${string}` | '/payment-agents/v1/agent-statistics' | `/payment-agents/v1/transfer/${string}` | `/payment-agents/v1/withdraw/${string}`;
    POST: '/trading/v1/options/accounts' | `/trading/v1/options/accounts/${string}/reset-demo-balance` | `/trading/v1/options/contracts/bulk-purchase/${'real' | 'demo'}` | '/payment-agents/v1/transfer' | '/payment-agents/v1/withdraw' | '/payment-agents/v1/withdraw/verification_code';
    PATCH: '/payment-agents/v1/clients/me';
}
/** The `code` of a problem. A newer server may send others. */
export type ProblemCode = 'login_required' | 'session_expired' | 'csrf_rejected' | 'origin_rejected' | 'navigation_required' | 'not_found' | 'method_not_allowed' | 'upgrade_required' | 'validation_failed' | 'bad_request' | 'body_too_large' | 'unsupported_media_type' | 'rate_limited' | 'upstream_error' | 'upstream_unreachable' | 'upstream_lost' | 'upstream_timeout' | 'credential_renewed' | 'provider_unavailable' | 'session_store_unavailable' | 'shutting_down' | 'internal_error';
/** The close codes of the server itself. Any other comes from the trading service or from the network. */
export type CloseCode = 1009 | 1011 | 1012 | 1013 | 4401 | 4403 | 4404 | 4408 | 4429;
/** The close reasons of the server itself, without `;retry_after=`. */
export type CloseReason = 'login_required' | 'session_expired' | 'upstream_error' | 'not_found' | 'slow_consumer' | 'too_many_relays' | 'rate_limited' | 'message_too_big' | 'internal_error' | 'shutting_down' | 'provider_unavailable' | 'session_store_unavailable' | 'upstream_unreachable' | 'upstream_timeout' | 'upstream_lost';
