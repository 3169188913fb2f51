import { setConfig } from '@kubb/plugin-client/clients/fetch'
import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import {
  getSession,
  getSession200Schema,
  getTradingV1OptionsAccounts,
  getTradingV1OptionsAccounts200Schema,
  getTradingV1OptionsAccounts401Schema,
  type Logout200,
  type LogoutMutationResponse,
  postTradingV1OptionsAccounts,
} from './client/index.ts'

// Otherwise it sends JSON as text/plain.
setConfig({ headers: { ...CSRF, 'Content-Type': 'application/json' } })

// It may have no body.
same<LogoutMutationResponse, Logout200 | void>(true)

export async function stranger(): Promise<Stranger> {
  const session = await getSession()
  same<typeof session.authenticated, boolean>(true)
  getSession200Schema.parse(session)
  // It takes every response for a success. The schemas tell them apart.
  const refused: unknown = await getTradingV1OptionsAccounts()
  const { code } = getTradingV1OptionsAccounts401Schema.parse(refused)
  same<typeof code, 'login_required' | 'session_expired'>(true)
  return { authenticated: session.authenticated, code }
}

export async function user(): Promise<User> {
  const listed = await getTradingV1OptionsAccounts()
  same<(typeof listed.data)[number]['balance'], Balance>(true)
  getTradingV1OptionsAccounts200Schema.parse(listed)
  const { data: opened } = await postTradingV1OptionsAccounts(ACCOUNT)
  if (Array.isArray(opened)) throw new Error('this account is new')
  same<typeof opened.balance, Balance>(true)
  return { balances: listed.data.map(({ balance }) => balance), opened: opened.balance }
}
