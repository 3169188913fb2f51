import type { Client } from 'trading-bff-client'
import { problem, type FakeClient } from 'trading-bff-client/testing'

/** What a test says of a server is checked against what the real one sends. */
export function typed(client: FakeClient): Client {
  const { server } = client
  server.respond('GET', '/trading/v1/options/accounts', { data: [] })
  // @ts-expect-error this path does not exist
  server.respond('GET', '/trading/v2/options/accounts', { data: [] })
  // @ts-expect-error a list of accounts is not a number
  server.respond('GET', '/trading/v1/options/accounts', 7)
  server.respond('POST', '/auth/logout', problem(503, 'session_store_unavailable'))
  server.respond('DELETE', '/auth/sessions', {})
  // @ts-expect-error no problem has this code
  server.respond('POST', '/auth/logout', problem(503, 'session_store_unavailabel'))
  server.reply('ticks', { tick: { epoch: 1, quote: 1 } })
  server.reply('ticks', async () => ({ error: { code: 'InvalidSymbol', message: 'unknown' } }))
  // @ts-expect-error a price is a number
  server.reply('ticks', { tick: { epoch: 1, quote: 'one' } })
  // @ts-expect-error this operation does not exist
  server.reply('tikcs', { tick: { epoch: 1, quote: 1 } })
  server.reply('buy', () => server.disconnect())
  server.reply<{ rate: number }>('exchange_rate', { rate: 1 })
  server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 1 } })
  server.push({ proposal_open_contract: 1, contract_id: 7 }, {})
  // @ts-expect-error this stream does not exist
  server.push({ tikcs: 'R_100' }, {})
  // @ts-expect-error a request for ticks has no such member
  server.push({ ticks: 'R_100', sybmol: 'R_50' }, {})
  return client
}
