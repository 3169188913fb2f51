import { Listeners } from './listeners.ts'

export type AccountType = 'demo' | 'real'

/** The balance of a new demo account and after a reset. */
const DEMO_BALANCE = 10_000
const REAL_BALANCE = 1000
/** How many transactions an account keeps. */
const MAX_HISTORY = 1000

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

/** A trading account. Its money is play money, even if the account is "real". */
export class Account {
  readonly id: string
  readonly type: AccountType
  readonly currency: string
  readonly transactions = new Listeners<Transaction>()
  /** The latest transactions, the newest last. */
  readonly history: Transaction[] = []
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

  /** Moves money. The caller checks that there is enough. */
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
    if (this.history.push(transaction) > MAX_HISTORY) this.history.shift()
    this.transactions.notify(transaction)
    return transaction
  }

  /** Resets the balance of a demo account. */
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
