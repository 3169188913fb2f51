import createClient from 'openapi-fetch'
import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import type { paths } from './client.ts'

const client = createClient<paths>({ headers: CSRF })
const ACCOUNTS = '/api/trading/v1/options/accounts'

export async function stranger(): Promise<Stranger> {
  const { data: session } = await client.GET('/auth/session')
  const { error } = await client.GET(ACCOUNTS)
  if (session === undefined || typeof error !== 'object' || !('code' in error)) throw new Error('this is no stranger')
  same<typeof session.authenticated, boolean>(true)
  return { authenticated: session.authenticated, code: error.code }
}

export async function user(): Promise<User> {
  const { data: listed } = await client.GET(ACCOUNTS)
  const { data: opened } = await client.POST(ACCOUNTS, { body: ACCOUNT })
  if (listed === undefined || opened === undefined || Array.isArray(opened.data)) throw new Error('this is no user')
  same<(typeof listed.data)[number]['balance'], Balance>(true)
  same<typeof opened.data.balance, Balance>(true)
  return { balances: listed.data.map(({ balance }) => balance), opened: opened.data.balance }
}
