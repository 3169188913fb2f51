import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import { Api, type HttpResponse, type Problem } from './client.ts'

const { auth, api } = new Api({ baseApiParams: { headers: CSRF } })

export async function stranger(): Promise<Stranger> {
  const { data: session } = await auth.getSession()
  same<typeof session.authenticated, boolean>(true)
  const refused = await api.getTradingV1OptionsAccounts().then(
    () => undefined,
    (response: HttpResponse<never, Problem>) => response,
  )
  if (refused === undefined) throw new Error('this is no stranger')
  return { authenticated: session.authenticated, code: refused.error.code }
}

export async function user(): Promise<User> {
  const { data: listed } = await api.getTradingV1OptionsAccounts()
  same<(typeof listed.data)[number]['balance'], Balance>(true)
  const { data: opened } = await api.postTradingV1OptionsAccounts(ACCOUNT)
  same<typeof opened.data.balance, Balance>(true)
  return { balances: listed.data.map(({ balance }) => balance), opened: opened.data.balance }
}
