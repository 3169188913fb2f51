import { ACCOUNT, CSRF, same, type Balance, type Stranger, type User } from '../shared/calls.ts'
import { AccountList, ExistingAccount, NewAccount, Session } from './schemas.ts'

const ACCOUNTS = '/api/trading/v1/options/accounts'

async function read(path: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(path, { headers: CSRF, ...init })
  return response.json()
}

/** Orval makes schemas of successes alone. */
export async function stranger(): Promise<Stranger> {
  const session = Session.parse(await read('/auth/session'))
  same<typeof session.authenticated, boolean>(true)
  const refused = await read(ACCOUNTS)
  if (AccountList.safeParse(refused).success) throw new Error('this is no stranger')
  return { authenticated: session.authenticated, code: (refused as { code: string }).code }
}

export async function user(): Promise<User> {
  const { data } = AccountList.parse(await read(ACCOUNTS))
  same<(typeof data)[number]['balance'], Balance>(true)
  const body = JSON.stringify(NewAccount.parse(ACCOUNT))
  const headers = { ...CSRF, 'Content-Type': 'application/json' }
  const opened = ExistingAccount.parse(await read(ACCOUNTS, { method: 'POST', headers, body }))
  same<typeof opened.data.balance, Balance>(true)
  return { balances: data.map(({ balance }) => balance), opened: opened.data.balance }
}
