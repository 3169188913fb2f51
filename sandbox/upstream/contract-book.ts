import type { Account } from './accounts.ts'
import { FIRST_ID } from './contract-ids.ts'
import { Contract } from './contract.ts'
import { Refusal } from './refusal.ts'
import type { Terms } from './terms.ts'

/** All contracts that were bought, open or ended. */
export class ContractBook {
  readonly #contracts = new Map<number, Contract>()
  readonly #tickMs: number
  #nextId = FIRST_ID

  constructor(tickMs: number) {
    this.#tickMs = tickMs
  }

  /** @throws Refusal if the account has too little money or another currency */
  buy(account: Account, terms: Terms): Contract {
    if (terms.currency !== account.currency)
      throw new Refusal('ContractBuyValidationError', `The account is not in ${terms.currency}.`)
    if (account.balance < terms.stake)
      throw new Refusal('InsufficientBalance', `Your account balance (${account.balance}) is insufficient.`)
    const contract = new Contract(this.#nextId++, account, terms, this.#tickMs)
    this.#contracts.set(contract.id, contract)
    return contract
  }

  /** A contract of this account; undefined for contracts of other accounts. */
  of(account: Account, id: number): Contract | undefined {
    const contract = this.#contracts.get(id)
    return contract?.account === account ? contract : undefined
  }

  openOf(account: Account): Contract[] {
    return this.#allOf(account).filter(({ status }) => status === 'open')
  }

  /** The contracts of an account that have ended, in the order of their purchase. */
  endedOf(account: Account): Contract[] {
    return this.#allOf(account).filter(({ status }) => status !== 'open')
  }

  #allOf(account: Account): Contract[] {
    return [...this.#contracts.values()].filter((contract) => contract.account === account)
  }
}
