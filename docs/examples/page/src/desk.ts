import { once, type Proposal, type TradingSocket } from 'trading-bff-client'
import { client } from './trading.ts'
import { byId, show, showError, showLine } from './view.ts'

/** The part of the page where the user trades on one account. */
export class Desk {
  readonly #socket: TradingSocket
  readonly #followed = new Set<number | string>()
  #proposal: Proposal | undefined

  constructor(accountId: string) {
    this.#socket = client.tradingSocket(accountId)
    this.#socket.onStatus(() => show('connection', this.#socket.status().state))
    this.#socket.subscribe(
      { balance: 1 },
      ({ balance: { balance, currency } }) => show('balance', `${balance.toFixed(2)} ${currency}`),
      showError,
    )
    // The first message has no transaction, also after a reconnect: from then on, the stream tells what is bought in any tab.
    this.#socket.subscribe(
      { transaction: 1 },
      ({ transaction: { action, contract_id: id } }) => {
        if (action === undefined) this.#showContracts().catch(showError)
        else if (action === 'buy' && id != null) this.#follow(id)
      },
      showError,
    )
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

  /** Buys at the price that is shown, once. If the answer is lost, the account says whether it was bought. */
  async buy(): Promise<void> {
    if (!this.#proposal) return
    const { id, ask_price: price } = this.#proposal
    this.#offer(undefined)
    show('message', 'Buying …')
    await once(() => this.#socket.command({ buy: id, price }))
    show('message', 'You have bought a contract.')
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
  #follow(contract_id: number | string): void {
    if (this.#followed.has(contract_id)) return
    this.#followed.add(contract_id)
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
