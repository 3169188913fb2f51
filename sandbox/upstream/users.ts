import { Account, type AccountType } from './accounts.ts'
import { Wallet } from './wallet.ts'

/** A user of the trading service, created by the first request with a valid token. */
export interface User {
  /** The provider's id of the user. */
  id: string
  nickname: string
  accounts: Account[]
  wallets: Wallet[]
  /** Settings as a client of payment agents. */
  agentSettings: Record<string, unknown>
  /** Transfers and withdrawals by `request_id`. */
  payments: Map<string, Payment>
}

/** A transfer or a withdrawal. */
export interface Payment {
  request_id: string
  kind: 'transfer' | 'withdraw'
  status: 'completed'
  amount: string
  currency: string
  created_at: string
}

/** All users with their accounts. A new user gets a demo account and a real account. */
export class Users {
  readonly #users = new Map<string, User>()
  readonly #owners = new Map<string, { account: Account; user: User }>()
  #nextNumber = 4580
  #nextTransactionId = 987_654_321

  of(id: string): User {
    const existing = this.#users.get(id)
    if (existing) return existing
    const number = this.#users.size + 1
    const user: User = {
      id,
      nickname: `trader-${number}`,
      accounts: [],
      wallets: [new Wallet('main', `W${1000 + number}`), new Wallet('demo', `DW${1000 + number}`)],
      agentSettings: { is_enabled: true, allow_withdrawals: true, language: 'en' },
      payments: new Map(),
    }
    this.#users.set(id, user)
    this.open(user, 'demo', 'USD')
    this.open(user, 'real', 'USD')
    return user
  }

  /** Opens an account. Its id is DOT… for demo, ROT… for real. */
  open(user: User, type: AccountType, currency: string): Account {
    const prefix = type === 'demo' ? 'DOT' : 'ROT'
    const id = `${prefix}9000${this.#nextNumber++}`
    const account = new Account(id, type, currency, () => this.#nextTransactionId++)
    user.accounts.push(account)
    this.#owners.set(id, { account, user })
    return account
  }

  /** An account and its owner. */
  account(id: string): { account: Account; user: User } | undefined {
    return this.#owners.get(id)
  }
}
