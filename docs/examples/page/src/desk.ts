import { SocketError, type Proposal, type TradingSocket } from 'trading-bff-client'
import { fate } from 'trading-bff-client/orders'
import { client } from './trading.ts'
import { byId, show, showError, showLine } from './view.ts'

/** The part of the page where the user trades on one account. */
export class Desk {
  readonly #socket: TradingSocket
  #proposal: Proposal | undefined

  constructor(accountId: string) {
    this.#socket = client.tradingSocket(accountId)
    this.#socket.onStatus(() => show('connection', this.#socket.status().state))
    this.#socket.subscribe(
      { balance: 1 },
      ({ balance: { balance, currency } }) => show('balance', `${balance.toFixed(2)} ${currency}`),
      showError,
    )
    this.#showContracts().catch(showError)
  }

  close(): void {
    this.#socket.close()
    this.#offer(undefined)
    show('balance', '–')
    show('connection', 'closed')
    byId('contracts').replaceChildren()
  }

  /** Asks for the price of a contract that wins if the market rises within five ticks. */
  async getPrice(symbol: string, stake: number): Promise<void> {
    this.#offer(undefined)
    const { proposal } = await this.#socket.request({
      proposal: 1,
      contract_type: 'CALL',
      underlying_symbol: symbol,
      amount: stake,
      basis: 'stake',
      currency: 'USD',
      duration: 5,
      duration_unit: 't',
    })
    this.#offer(proposal)
  }

  /** Buys at the price that is shown. */
  async buy(): Promise<void> {
    if (!this.#proposal) return
    const { id, ask_price: price } = this.#proposal
    this.#offer(undefined)
    try {
      const { buy } = await this.#socket.command({ buy: id, price })
      show('message', 'You have bought a contract.')
      this.#follow(buy.contract_id)
    } catch (error) {
      showError(error)
      if (error instanceof SocketError && error.order) await this.#findOut(error)
    }
  }

  /** Tells the user what became of a purchase whose answer was lost, as soon as the account shows it. */
  async #findOut(error: SocketError): Promise<void> {
    const found = await fate(error)
    if (found.is === 'made') {
      show('message', 'You have bought a contract.')
      this.#follow(found.contract.contract_id)
    } else if (found.is === 'not_seen') show('message', 'No contract has appeared. Look again before you repeat it.')
    else {
      show('message', 'One of the new contracts may be yours.')
      for (const { contract_id } of found.candidates) this.#follow(contract_id)
    }
  }

  #offer(proposal: Proposal | undefined): void {
    this.#proposal = proposal
    byId('proposal').hidden = proposal === undefined
    show('terms', proposal ? `${proposal.ask_price}: ${proposal.longcode}` : '')
  }

  async #showContracts(): Promise<void> {
    const { portfolio } = await this.#socket.request({ portfolio: 1 })
    for (const { contract_id: id } of portfolio.contracts) if (id !== undefined) this.#follow(id)
  }

  /** Shows a contract until it has ended. */
  #follow(contract_id: number): void {
    const stop = this.#socket.subscribe(
      { proposal_open_contract: 1, contract_id },
      ({ proposal_open_contract: { longcode, status, profit } }) => {
        showLine('contracts', `contract-${contract_id}`, `${status}, profit ${profit}: ${longcode}`)
        if (status !== 'open') stop()
      },
      showError,
    )
  }
}
