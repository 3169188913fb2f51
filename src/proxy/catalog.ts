import type { Endpoint } from './endpoint.ts'
import { REPORTING_PERIOD } from './query-rules.ts'

/**
 * THE list of the upstream endpoints that browsers may reach (docs/upstream.md, Endpoints). Anything absent does not exist for
 * them, above all the OTP endpoint, whose response is a credential.
 * @param partnerOverviewPath the upstream path of the partner overview, which has no route without it
 */
export function catalog(partnerOverviewPath: string | undefined): readonly Endpoint[] {
  if (partnerOverviewPath === undefined) return ENDPOINTS
  const overview: Endpoint = {
    ...bearer('GET', partnerOverviewPath, 'Partner overview of a reporting period', { response: 'PartnerOverview' }),
    query: REPORTING_PERIOD,
  }
  return [...ENDPOINTS, overview]
}

function bearer(
  method: Endpoint['method'],
  path: string,
  summary: string,
  bodies?: Pick<Endpoint, 'request' | 'response'>,
): Endpoint {
  return { method, path, credential: 'bearer', summary, ...bodies }
}

const ENDPOINTS: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/v1/health',
    credential: 'none',
    summary: 'Health of the trading service',
    response: 'Health',
    isShared: true,
  },
  bearer('GET', '/account/v1/nickname', 'Account nickname', { response: 'AgentsBody' }),
  bearer('GET', '/trading/v1/options/accounts', 'List accounts', { response: 'AccountList' }),
  bearer('POST', '/trading/v1/options/accounts', 'Create an account', {
    request: 'NewAccountRequest',
    response: { 200: 'ExistingAccount', 201: 'NewAccount' },
  }),
  bearer('POST', '/trading/v1/options/accounts/:account_id/reset-demo-balance', 'Reset the balance of a demo account', {
    response: 'OptionsBody',
  }),
  {
    method: 'POST',
    path: '/trading/v1/options/contracts/bulk-purchase/:kind',
    parameters: { kind: /^(real|demo)$/ },
    credential: 'pat',
    summary: 'Buy contracts for several accounts, each with its own token in the body',
    request: 'BulkPurchase',
    response: 'OptionsBody',
  },
  bearer('GET', '/wallet/v1/wallets', 'List wallets', { response: 'WalletList' }),
  bearer('GET', '/wallet/v1/transactions/:wallet_type', 'Transactions of a wallet', { response: 'WalletsBody' }),
  bearer('GET', '/applications/v1/markup-statistics', 'Markup statistics of the application'),
  bearer('GET', '/payment-agents/v1/clients/me', 'Payment-agent settings of the client', { response: 'AgentsBody' }),
  bearer('PATCH', '/payment-agents/v1/clients/me', 'Change the payment-agent settings of the client', {
    response: 'AgentsBody',
  }),
  bearer('GET', '/payment-agents/v1/agents', 'List payment agents', { response: 'AgentList' }),
  bearer('GET', '/payment-agents/v1/agents/:id', 'One payment agent', { response: 'AgentBody' }),
  bearer('GET', '/payment-agents/v1/agent-statistics', 'Payment-agent statistics', { response: 'AgentsBody' }),
  bearer('POST', '/payment-agents/v1/transfer', 'Create a transfer', {
    request: 'TransferRequest',
    response: 'AgentsBody',
  }),
  bearer('GET', '/payment-agents/v1/transfer/:request_id', 'Status of a transfer', { response: 'AgentsBody' }),
  bearer('POST', '/payment-agents/v1/withdraw', 'Create a withdrawal', {
    request: 'WithdrawalRequest',
    response: 'AgentsBody',
  }),
  bearer('GET', '/payment-agents/v1/withdraw/:request_id', 'Status of a withdrawal', { response: 'AgentsBody' }),
  bearer('POST', '/payment-agents/v1/withdraw/verification_code', 'Ask for a withdrawal verification code', {
    request: 'VerificationCodeRequest',
    response: 'AgentsBody',
  }),
]
