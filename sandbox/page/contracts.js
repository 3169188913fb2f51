/**
 * The contracts of the chosen account: those that were open when the page connected, and all that are bought afterwards,
 * here or in another tab. Each is followed until it ends.
 */
import { SocketError } from './bff.js'
import { drawPanel, drawRow, rowOf, titleOf } from './contract-view.js'
import { $ } from './dom.js'
import { toNumber } from './format.js'
import { dismiss, notice } from './notices.js'
import { AREA, notSent } from './not-sent.js'
import { session } from './session.js'

/** The number of contracts in the list, unless more are open. */
const SHOWN = 8
const RESULTS = new Set(['won', 'lost', 'sold', 'cancelled'])

export class Contracts {
  #socket
  /** Newest first. */
  #all = []
  #isConnected = false

  /** Follows the contracts of an account over its socket. Those of the account before are forgotten. */
  attach(socket) {
    this.#socket = socket
    this.#all = []
    dismiss('contracts')
    this.#draw()
    socket?.subscribe(
      { transaction: 1 },
      ({ transaction }) => {
        if (transaction?.action === 'buy') this.add(fromTransaction(transaction))
      },
      () => {}, // Contracts that are bought here are followed without it.
    )
  }

  /** Reads the open contracts, and follows those that are new to this page. */
  async refresh() {
    const socket = this.#socket
    try {
      const { portfolio } = await socket.request({ portfolio: 1 })
      if (socket !== this.#socket) return
      dismiss('contracts')
      for (const contract of portfolio?.contracts ?? []) this.add(fromPortfolio(contract))
    } catch (error) {
      // After a lost connection they are read again.
      if (error.reply)
        notice({ key: 'contracts', kind: 'error', text: `Open contracts cannot be shown. ${error.message}` })
    }
  }

  /** Without a connection, prices are old, and nothing can be sold. */
  setConnected(isConnected) {
    this.#isConnected = isConnected
    this.#draw()
  }

  /** Follows a contract, unless it is followed already: { id, type, symbol, stake, currency, at }. */
  add(contract) {
    if (this.#all.some(({ id }) => id === contract.id)) return
    const added = {
      ...contract,
      result: 'open',
      profit: undefined,
      bid: undefined,
      isSelling: false,
      update: {},
    }
    added.row = rowOf(added, (each) => this.#sell(each))
    this.#all.push(added)
    this.#all.sort((a, b) => b.at - a.at || b.id - a.id)
    this.#all = this.#all.filter(({ result }, index) => index < SHOWN || result === 'open')
    this.#draw()
    added.stop = this.#socket.subscribe(
      { proposal_open_contract: 1, contract_id: added.id },
      ({ proposal_open_contract: update }) => this.#take(added, update),
      ({ reply, message }) => {
        // Without a reply the connection has ended, which its line says.
        if (!reply) return
        notice({
          key: 'contracts',
          kind: 'error',
          text: `A contract cannot be followed: ${titleOf(added)}. ${message}`,
        })
      },
    )
  }

  #take(contract, update) {
    if (update?.contract_id === undefined || contract.result !== 'open') return
    Object.assign(contract, {
      update,
      type: update.contract_type ?? contract.type,
      profit: toNumber(update.profit) ?? contract.profit,
      bid: toNumber(update.bid_price),
      result: resultOf(update),
    })
    if (contract.result !== 'open') contract.stop()
    this.#draw()
  }

  /** Sells a contract early, for the price that the page shows or a better one. */
  async #sell(contract) {
    const { id, bid, result, isSelling } = contract
    if (isSelling || result !== 'open') return
    if (!this.#isConnected) return notSent('sold')
    if (session.ordersPaused?.closing === false) return
    const show = (isBusy) => {
      contract.isSelling = isBusy
      this.#draw()
    }
    show(true)
    dismiss('sell')
    try {
      await this.#socket.command({ sell: id, price: bid })
    } catch (error) {
      if (!(error instanceof SocketError)) throw error
      if (error.outcome !== 'unknown' && !error.reply) return notSent('sold')
      notice({ key: 'sell', kind: 'error', text: sellFailure(contract, error), area: AREA })
    } finally {
      show(false)
    }
  }

  /** Shows the newest contract, also on the chart if that shows its market. */
  drawNewest() {
    drawPanel(this.#all[0], this.#isConnected, (each) => this.#sell(each))
  }

  /** The newest contract is in the panel below the form while it is open, and then in the list, too. */
  #draw() {
    const listed = this.#all.filter((contract, index) => index > 0 || contract.result !== 'open')
    $('#results-empty').hidden = listed.length > 0
    $('#results').hidden = listed.length === 0
    for (const contract of listed) drawRow(contract.row, contract, this.#isConnected)
    const rows = listed.map(({ row }) => row)
    // A row that is inserted again would lose the focus.
    for (const row of [...$('#results').children]) if (!rows.includes(row)) row.remove()
    rows.forEach((row, index) => {
      if ($('#results').children[index] !== row) $('#results').insertBefore(row, $('#results').children[index] ?? null)
    })
    this.drawNewest()
  }
}

function sellFailure(contract, { outcome, message }) {
  const title = titleOf(contract)
  if (outcome === 'unknown')
    return `It is not known whether this contract was sold: ${title}. Its state is shown once the connection is back.`
  return `Nothing was sold. ${message}`
}

function resultOf({ status, is_sold, is_expired, profit }) {
  if (RESULTS.has(status)) return status
  const settled = is_sold === 1 || is_sold === true || (is_expired === 1 && is_sold === undefined)
  if (!settled) return 'open'
  return toNumber(profit) > 0 ? 'won' : 'lost'
}

function fromPortfolio({ contract_id, contract_type, underlying_symbol, symbol, buy_price, currency, purchase_time }) {
  return {
    id: contract_id,
    type: contract_type,
    symbol: underlying_symbol ?? symbol,
    stake: toNumber(buy_price),
    currency,
    at: Number(purchase_time) * 1000,
  }
}

function fromTransaction({ contract_id, underlying_symbol, symbol, amount, currency, transaction_time }) {
  return {
    id: contract_id,
    symbol: underlying_symbol ?? symbol,
    stake: Math.abs(toNumber(amount)),
    currency,
    at: Number(transaction_time) * 1000,
  }
}
