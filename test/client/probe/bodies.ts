import { once, type AccountList, type Client, type RequestBody, type TransferRequest } from 'trading-bff-client'

// Nothing runs this. Each compiler must accept it, and so find an error after every `@ts-expect-error`.

declare module 'trading-bff-client' {
  interface MorePaths {
    POST: '/mine/v1/things'
  }
  /** A member that this trading service knows. */
  interface Withdrawal {
    memo?: string
  }
}

/** Bodies as the paths expect them. */
export async function right({ api, tradingSocket }: Client, agent_id: number): Promise<unknown> {
  const data = { agent_id, amount: '10.00', currency: 'USD' }
  await api('/payment-agents/v1/withdraw/verification_code', { method: 'POST', json: { data } })
  await api('/payment-agents/v1/withdraw', {
    method: 'POST',
    json: { data: { ...data, verification_code: '123456', request_id: 'mine', memo: 'more' } },
    idempotencyKey: true,
  })
  const transfer: TransferRequest = { data: { to_nickname: 'somebody', amount: '10.00', currency: 'USD' } }
  await once(
    (idempotencyKey) => api('/payment-agents/v1/transfer', { method: 'POST', json: transfer, idempotencyKey }),
    { isMade: () => false },
  )
  const trading = tradingSocket('VRTC100')
  // @ts-expect-error the call has another key, or none
  await once(() => api('/payment-agents/v1/transfer', { method: 'POST', json: transfer }))
  // @ts-expect-error the same
  await once(async () => api('/payment-agents/v1/transfer', { method: 'POST', json: transfer, idempotencyKey: true }))
  await once(() => trading.command({ sell: 1, price: 0 }))
  const sent: AccountList | undefined = await once(async (idempotencyKey) => {
    await api('/payment-agents/v1/transfer', { method: 'POST', json: transfer, idempotencyKey })
    return (await api('/trading/v1/options/accounts')).json()
  })
  await once<string>(async (idempotencyKey) => `${idempotencyKey} ${sent?.data.length}`, { remember: 'transfer' })
  const [first] = sent?.data ?? []
  if (first) tradingSocket(first.account_id).status()
  const more: unknown = first?.['landing_company']
  const kinds = ['demo', 'real'] as const
  for (const kind of kinds) {
    await api(`/trading/v1/options/contracts/bulk-purchase/${kind}`, {
      method: 'POST',
      json: { contract_parameters: { amount: 10 }, accounts: [{ token: 'a token', account_id: 'VRTC100' }] },
    })
  }
  const account: RequestBody<'POST', '/trading/v1/options/accounts'> = {
    currency: 'USD',
    group: 'row',
    account_type: 'demo',
  }
  await api('/trading/v1/options/accounts', { method: 'POST', json: account })
  await api('/trading/v1/options/accounts/VRTC100/reset-demo-balance', { method: 'POST' })
  return [account.account_type, more]
}

/** Bodies that are not described, and those that a page writes by itself. */
export async function undescribed({ api }: Client): Promise<void> {
  await api('/payment-agents/v1/clients/me', { method: 'PATCH', json: { language: 'de' } })
  await api('/mine/v1/things', { method: 'POST', json: [1] })
  await api('/payment-agents/v1/transfer', { method: 'POST', body: '{"own":1}' })
}

export async function wrong({ api }: Client): Promise<void> {
  const path = '/payment-agents/v1/transfer'
  const [to_nickname, currency] = ['somebody', 'USD']
  // @ts-expect-error a misspelt member
  await api(path, { method: 'POST', json: { data: { to_nickname, currency, amuont: '10.00' } } })
  // @ts-expect-error a misspelt member that may be left out
  await api(path, { method: 'POST', json: { data: { to_nickname, currency, amount: '10.00', note: '' } } })
  // @ts-expect-error a member is missing
  await api(path, { method: 'POST', json: { data: { to_nickname, currency } } })
  // @ts-expect-error an amount is a text
  await api(path, { method: 'POST', json: { data: { to_nickname, currency, amount: 10 } } })
  // @ts-expect-error without its envelope
  await api(path, { method: 'POST', json: { to_nickname, currency, amount: '10.00' } })
  // @ts-expect-error the body of another path
  await api('/payment-agents/v1/withdraw', { method: 'POST', json: { data: { to_nickname, currency, amount: '1' } } })
  // @ts-expect-error no such kind of account
  await api('/trading/v1/options/accounts', { method: 'POST', json: { currency, group: 'row', account_type: 'dmeo' } })
  const bulk = '/trading/v1/options/contracts/bulk-purchase/real'
  // @ts-expect-error an account without its id
  await api(bulk, { method: 'POST', json: { contract_parameters: {}, accounts: [{ token: 'a token' }] } })
  // @ts-expect-error wallets have no POST
  await api('/wallet/v1/wallets', { method: 'POST', json: {} })
}
