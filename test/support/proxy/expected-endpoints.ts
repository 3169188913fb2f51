import type { Endpoint } from '../../../src/proxy/endpoint.ts'

export const OVERVIEW = '/partners/analytics/v1/overview'

/** The endpoints of docs/upstream.md (Endpoints) once more: method, an example of the path, credential. */
export const EXPECTED: readonly (readonly [method: string, path: string, credential: Endpoint['credential']])[] = [
  ['GET', '/account/v1/nickname', 'bearer'],
  ['POST', '/trading/v1/options/contracts/bulk-purchase/real', 'pat'],
  ['POST', '/trading/v1/options/contracts/bulk-purchase/demo', 'pat'],
  ['POST', '/trading/v1/options/accounts', 'bearer'],
  ['GET', '/trading/v1/options/accounts', 'bearer'],
  ['GET', '/v1/health', 'none'],
  ['GET', '/applications/v1/markup-statistics', 'bearer'],
  ['GET', '/payment-agents/v1/clients/me', 'bearer'],
  ['PATCH', '/payment-agents/v1/clients/me', 'bearer'],
  ['GET', '/payment-agents/v1/agents/Agent-7_b', 'bearer'],
  ['GET', '/payment-agents/v1/agents', 'bearer'],
  ['GET', '/payment-agents/v1/agent-statistics', 'bearer'],
  ['POST', '/payment-agents/v1/transfer', 'bearer'],
  ['GET', `/payment-agents/v1/transfer/${'x'.repeat(64)}`, 'bearer'],
  ['POST', '/payment-agents/v1/withdraw', 'bearer'],
  ['GET', '/payment-agents/v1/withdraw/1', 'bearer'],
  ['POST', '/payment-agents/v1/withdraw/verification_code', 'bearer'],
  ['POST', '/trading/v1/options/accounts/VRTC-1/reset-demo-balance', 'bearer'],
  ['GET', '/wallet/v1/wallets', 'bearer'],
  ['GET', '/wallet/v1/transactions/main', 'bearer'],
  ['GET', OVERVIEW, 'bearer'],
]

export function expectedOf(endpoint: Endpoint): typeof EXPECTED {
  return EXPECTED.filter(([method, path]) => method === endpoint.method && isRoutedBy(endpoint, path))
}

export function isRoutedBy({ path: template, parameters }: Endpoint, path: string): boolean {
  const source = template.replaceAll(/:(\w+)/g, (_all, name: string) =>
    parameters?.[name] === undefined ? '[^/]+' : parameters[name].source.slice(1, -1),
  )
  return new RegExp(`^${source}$`).test(path)
}
