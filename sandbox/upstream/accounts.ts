import { Listeners } from './listeners.ts'

export type AccountType = 'demo' | 'real'

/** What a demo account starts with, and is set back to. */
const DEMO_BALANCE = 10_000
const REAL_BALANCE = 1000

/** A movement of money on a trading account. */
export interface Transaction {
  id: number
  action: 'buy' | 'sell' | 'reset'
  /** Negative for money that leaves the account. */
  amount: number
  balanceAfter: number
  /** Epoch seconds. */
  time: number
  contract?: { id: number; symbol: string; longcode: string }
}

/** A trading account: a balance, and those who watch it. Its play money is worth nothing, "real" or not. */
export class Account {
  readonly id: string
  readonly type: AccountType
  readonly currency: string
  readonly transactions = new Listeners<Transaction>()
  readonly #nextTransactionId: () => number
  #balance: number

  constructor(id: string, type: AccountType, currency: string, nextTransactionId: () => number) {
    this.id = id
    this.type = type
    this.currency = currency
    this.#nextTransactionId = nextTransactionId
    this.#balance = type === 'demo' ? DEMO_BALANCE : REAL_BALANCE
  }

  get balance(): number {
    return this.#balance
  }

  /** Moves money. Whether there is enough is the caller's question. */
  book(action: Transaction['action'], amount: number, contract?: Transaction['contract']): Transaction {
    this.#balance = cents(this.#balance + amount)
    const transaction: Transaction = {
      id: this.#nextTransactionId(),
      action,
      amount: cents(amount),
      balanceAfter: this.#balance,
      time: nowSeconds(),
      ...(contract && { contract }),
    }
    this.transactions.tell(transaction)
    return transaction
  }

  /** Sets a demo account back to its first balance. */
  reset(): void {
    this.book('reset', DEMO_BALANCE - this.#balance)
  }
}

export function cents(amount: number): number {
  return Math.round(amount * 100) / 100
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
