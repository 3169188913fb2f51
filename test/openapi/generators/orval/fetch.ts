import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import { getSession, getTradingV1OptionsAccounts, postTradingV1OptionsAccounts } from './fetch-client.ts'

const page = { headers: CSRF }

export async function stranger(): Promise<Stranger> {
  const session = await getSession()
  const refused = await getTradingV1OptionsAccounts(page)
  if (session.status !== 200 || refused.status !== 401) throw new Error('this is no stranger')
  same<typeof session.data.authenticated, boolean>(true)
  same<typeof refused.data.code, 'login_required' | 'session_expired'>(true)
  return { authenticated: session.data.authenticated, code: refused.data.code }
}

export async function user(): Promise<User> {
  const listed = await getTradingV1OptionsAccounts(page)
  const opened = await postTradingV1OptionsAccounts(ACCOUNT, page)
  if (listed.status !== 200 || opened.status !== 200) throw new Error('this is no user')
  same<(typeof listed.data.data)[number]['balance'], Balance>(true)
  same<typeof opened.data.data.balance, Balance>(true)
  return { balances: listed.data.data.map(({ balance }) => balance), opened: opened.data.data.balance }
}
