import type { Endpoint } from './endpoint.ts'
import { reportingPeriod } from './query-rules.ts'

const MAX_REPORTING_DAYS = 730

/**
 * THE list of the upstream endpoints that browsers may reach (docs/upstream.md, Endpoints). Anything absent does not exist for
 * them, above all the OTP endpoint, whose response is a credential.
 * @param partnerOverviewPath the upstream path of the partner overview, which has no route without it
 */
export function catalog(partnerOverviewPath: string | undefined): readonly Endpoint[] {
  const overview: Endpoint[] =
    partnerOverviewPath === undefined
      ? []
      : [
          {
            method: 'GET',
            path: partnerOverviewPath,
            credential: 'bearer',
            summary: 'Partner overview of a reporting period',
            query: reportingPeriod('start_date', 'end_date', MAX_REPORTING_DAYS),
          },
        ]
  return [...ENDPOINTS, ...overview]
}

const ENDPOINTS: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/v1/health',
    credential: 'none',
    summary: 'Health of the trading service',
    isShared: true,
  },
  { method: 'GET', path: '/account/v1/nickname', credential: 'bearer', summary: 'Account nickname' },
  { method: 'GET', path: '/trading/v1/options/accounts', credential: 'bearer', summary: 'List accounts' },
  {
    method: 'POST',
    path: '/trading/v1/options/accounts',
    credential: 'bearer',
    summary: 'Create an account',
  },
  {
    method: 'POST',
    path: '/trading/v1/options/accounts/:account_id/reset-demo-balance',
    credential: 'bearer',
    summary: 'Reset the balance of a demo account',
  },
  {
    method: 'POST',
    path: '/trading/v1/options/contracts/bulk-purchase/:kind',
    parameters: { kind: /^(real|demo)$/ },
    credential: 'pat',
    summary: 'Buy contracts for several accounts, each with its own token in the body',
  },
  { method: 'GET', path: '/wallet/v1/wallets', credential: 'bearer', summary: 'List wallets' },
  {
    method: 'GET',
    path: '/wallet/v1/transactions/:wallet_type',
    credential: 'bearer',
    summary: 'Transactions of a wallet',
  },
  {
    method: 'GET',
    path: '/applications/v1/markup-statistics',
    credential: 'bearer',
    summary: 'Markup statistics of the application',
  },
  {
    method: 'GET',
    path: '/payment-agents/v1/clients/me',
    credential: 'bearer',
    summary: 'Payment-agent settings of the client',
  },
  {
    method: 'PATCH',
    path: '/payment-agents/v1/clients/me',
    credential: 'bearer',
    summary: 'Change the payment-agent settings of the client',
  },
  { method: 'GET', path: '/payment-agents/v1/agents', credential: 'bearer', summary: 'List payment agents' },
  {
    method: 'GET',
    path: '/payment-agents/v1/agents/:id',
    credential: 'bearer',
    summary: 'One payment agent',
  },
  {
    method: 'GET',
    path: '/payment-agents/v1/agent-statistics',
    credential: 'bearer',
    summary: 'Payment-agent statistics',
  },
  { method: 'POST', path: '/payment-agents/v1/transfer', credential: 'bearer', summary: 'Create a transfer' },
  {
    method: 'GET',
    path: '/payment-agents/v1/transfer/:request_id',
    credential: 'bearer',
    summary: 'Status of a transfer',
  },
  {
    method: 'POST',
    path: '/payment-agents/v1/withdraw',
    credential: 'bearer',
    summary: 'Create a withdrawal',
  },
  {
    method: 'GET',
    path: '/payment-agents/v1/withdraw/:request_id',
    credential: 'bearer',
    summary: 'Status of a withdrawal',
  },
  {
    method: 'POST',
    path: '/payment-agents/v1/withdraw/verification_code',
    credential: 'bearer',
    summary: 'Ask for a withdrawal verification code',
  },
]
