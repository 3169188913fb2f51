import { MutationObserver, QueryClient } from '@tanstack/react-query'
import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import {
  getGetSessionQueryOptions,
  getGetTradingV1OptionsAccountsQueryOptions,
  getPostTradingV1OptionsAccountsMutationOptions,
} from './react-query-client.ts'

const page = { fetch: { headers: CSRF } }

export async function stranger(): Promise<Stranger> {
  const queries = new QueryClient()
  const session = await queries.fetchQuery(getGetSessionQueryOptions())
  const refused = await queries.fetchQuery(getGetTradingV1OptionsAccountsQueryOptions(page))
  if (session.status !== 200 || refused.status !== 401) throw new Error('this is no stranger')
  same<typeof session.data.authenticated, boolean>(true)
  same<typeof refused.data.code, 'login_required' | 'session_expired'>(true)
  return { authenticated: session.data.authenticated, code: refused.data.code }
}

export async function user(): Promise<User> {
  const queries = new QueryClient()
  const listed = await queries.fetchQuery(getGetTradingV1OptionsAccountsQueryOptions(page))
  const opening = new MutationObserver(queries, getPostTradingV1OptionsAccountsMutationOptions(page))
  const opened = await opening.mutate({ data: ACCOUNT })
  if (listed.status !== 200 || opened.status !== 200) throw new Error('this is no user')
  same<(typeof listed.data.data)[number]['balance'], Balance>(true)
  same<typeof opened.data.data.balance, Balance>(true)
  return { balances: listed.data.data.map(({ balance }) => balance), opened: opened.data.data.balance }
}
