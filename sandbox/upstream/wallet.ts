import { randomUUID } from 'node:crypto'
import { cents } from './accounts.ts'

export type WalletType = 'main' | 'demo'

/** The balance of a new wallet. */
const FIRST_DEPOSIT = 5000

export interface WalletTransaction {
  transaction_id: string
  type: 'deposit' | 'transfer' | 'withdraw'
  /** Negative for money that leaves the wallet. */
  amount: string
  balance_after: string
  created_at: string
}

/** Money outside the trading accounts. The amounts of its transactions are decimal strings, as in its REST endpoints. */
export class Wallet {
  readonly type: WalletType
  readonly id: string
  readonly currency = 'USD'
  readonly transactions: WalletTransaction[] = []
  #balance = 0

  constructor(type: WalletType, id: string) {
    this.type = type
    this.id = id
    this.book('deposit', FIRST_DEPOSIT)
  }

  get balance(): number {
    return this.#balance
  }

  /** Moves money. The caller checks that there is enough. */
  book(type: WalletTransaction['type'], amount: number): void {
    this.#balance = cents(this.#balance + amount)
    this.transactions.push({
      transaction_id: randomUUID(),
      type,
      amount: amount.toFixed(2),
      balance_after: this.#balance.toFixed(2),
      created_at: new Date().toISOString(),
    })
  }
}
