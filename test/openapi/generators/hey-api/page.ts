import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import { client } from './client/client.gen.ts'
import { getSession, getTradingV1OptionsAccounts, postTradingV1OptionsAccounts } from './client/index.ts'

client.setConfig({ headers: CSRF })

export async function stranger(): Promise<Stranger> {
  const session = await getSession({ throwOnError: true })
  same<typeof session.data.authenticated, boolean>(true)
  const { error } = await getTradingV1OptionsAccounts()
  if (typeof error !== 'object' || !('code' in error)) throw new Error('this is no stranger')
  return { authenticated: session.data.authenticated, code: error.code }
}

export async function user(): Promise<User> {
  const listed = await getTradingV1OptionsAccounts({ throwOnError: true })
  same<(typeof listed.data.data)[number]['balance'], Balance>(true)
  const opened = await postTradingV1OptionsAccounts({ body: ACCOUNT, throwOnError: true })
  const { data } = opened.data
  if (Array.isArray(data)) throw new Error('this account is new')
  same<typeof data.balance, Balance>(true)
  return { balances: listed.data.data.map(({ balance }) => balance), opened: data.balance }
}
