/** The Demo trade card: the socket of the chosen demo account, a quote that follows the form, and buying. */
import { accounts } from './accounts.js'
import { client, SocketError } from './bff.js'
import { ConnectionLine, isOffline } from './connection.js'
import { titleOf } from './contract-view.js'
import { Contracts } from './contracts.js'
import { $, setText } from './dom.js'
import { money, toNumber } from './format.js'
import { findOut } from './lost-order.js'
import { market } from './market.js'
import { dismiss, notice } from './notices.js'
import { AREA, notSent, sentNothing } from './not-sent.js'
import { session } from './session.js'
import { readTicket, showQuote } from './ticket.js'

const QUOTE_DELAY_MS = 300
const NOT_CONNECTED = 'Prices appear once connected.'

class Trade {
  #account
  #socket
  #connection = new ConnectionLine('trade')
  #contracts = new Contracts()
  /** False until the connection has opened, and again once it is lost. */
  #isConnected = false
  #quote
  /** Why there is no quote; undefined while one is awaited. */
  #problem
  #stopQuote
  #quoteTimer
  #isBuying = false

  start() {
    accounts.addEventListener('change', () => this.#accountChanged())
    session.addEventListener('pause', () => this.#socket && this.#connectionChanged())
    market.addEventListener('change', () => {
      this.#contracts.drawNewest()
      this.#quoteSoon()
    })
    $('#ticket').addEventListener('input', () => this.#quoteSoon())
    $('#ticket').addEventListener('submit', (event) => {
      event.preventDefault()
      this.#buy()
    })
  }

  #accountChanged() {
    this.#socket?.close()
    this.#account = accounts.chosen
    const { id, currency } = this.#account ?? {}
    this.#socket = id === undefined ? undefined : client.tradingSocket(id)
    this.#isBuying = false
    this.#isConnected = false
    // Without an account the session has ended or changed, and the next user must not read what concerns this one.
    if (id === undefined) $(`#${AREA}`).replaceChildren()
    this.#show(undefined)
    setText($('#trade-balance'), '–')
    $('#trade-empty').hidden = id !== undefined
    $('#trade-desk').hidden = id === undefined
    setText($('#trade-account'), id ?? '')
    setText($('#stake-currency'), currency ?? 'USD')
    this.#connection.follow(this.#socket)
    this.#contracts.attach(this.#socket)
    if (this.#socket) this.#follow(this.#socket, id)
  }

  #follow(socket, id) {
    socket.onStatus(() => socket === this.#socket && this.#connectionChanged())
    socket.subscribe(
      { balance: 1 },
      ({ balance }) => this.#showBalance(id, balance),
      () => {}, // The balance stays as it is, and the connection says what is wrong.
    )
    this.#quoteSoon(0)
    // The connection may be open already: the package keeps it for a moment, for example while the accounts are reloaded.
    this.#connectionChanged()
  }

  #connectionChanged() {
    const { state } = this.#socket.status()
    const isOpen = state === 'open'
    // The prices of a connection that may be dead are old.
    this.#contracts.setConnected(isOpen)
    if (isOpen) sentNothing()
    if (isOpen && !this.#isConnected) {
      this.#isConnected = true
      this.#contracts.refresh()
    }
    // A quote belongs to its connection. The package asks for it again on the next one.
    if (isOpen || state === 'stale') return this.#show(this.#quote, this.#problem)
    this.#isConnected = false
    this.#show(undefined)
  }

  #showBalance(id, balance) {
    if (toNumber(balance?.balance) === undefined) return
    setText($('#trade-balance'), money(balance.balance, balance.currency ?? this.#account?.currency))
    accounts.setBalance(id, balance.balance)
  }

  #quoteSoon(delay = QUOTE_DELAY_MS) {
    clearTimeout(this.#quoteTimer)
    this.#stopQuote?.()
    this.#stopQuote = undefined
    this.#show(undefined)
    this.#quoteTimer = setTimeout(() => this.#askQuote(), delay)
  }

  #askQuote() {
    if (this.#socket === undefined || market.symbol === undefined) return
    const { problem, ...terms } = readTicket()
    if (problem !== undefined) return this.#show(undefined, problem)
    const order = { type: terms.contract_type, symbol: market.symbol, currency: this.#account.currency }
    const { symbol: underlying_symbol, currency } = order
    this.#stopQuote = this.#socket.subscribe(
      { proposal: 1, ...terms, basis: 'stake', currency, underlying_symbol },
      ({ proposal: { id, ask_price, payout } }) =>
        this.#show({ ...order, id, price: toNumber(ask_price), payout: toNumber(payout) }),
      (error) => error.reply && this.#show(undefined, error.message),
    )
  }

  /** Shows a quote, or none and perhaps why. */
  #show(quote, problem) {
    this.#quote = quote
    this.#problem = problem
    const isOpen = this.#socket?.status().state === 'open'
    const hint = this.#socket && !isOpen ? NOT_CONNECTED : ''
    showQuote(quote, {
      problem,
      hint,
      isUsable: isOpen && !this.#isBuying,
      isBuying: this.#isBuying,
      pause: session.ordersPaused,
    })
  }

  /** Buys what the quote offers. The order is sent now and once, or never. */
  async #buy() {
    if (this.#isBuying) return
    const [quote, socket, account] = [this.#quote, this.#socket, this.#account]
    if (quote === undefined || session.ordersPaused) return this.#refuse()
    dismiss('buy')
    dismiss('not-sent')
    this.#isBuying = true
    this.#show(quote)
    try {
      const { buy } = await socket.command({ buy: quote.id, price: quote.price })
      if (socket === this.#socket) this.#bought(quote, buy)
    } catch (error) {
      if (!(error instanceof SocketError)) throw error
      this.#notBought({ ...quote, stake: quote.price, account }, error)
    } finally {
      if (socket === this.#socket) {
        this.#isBuying = false
        // A bought proposal is used up. Any other is still on offer.
        this.#quoteSoon(0)
      }
    }
  }

  /** Says why there is nothing to buy. */
  #refuse() {
    const state = this.#socket?.status().state
    if (state !== 'open' || isOffline()) notSent('bought')
    // The form says so already.
    else if (session.ordersPaused) return
    else if (this.#problem === undefined)
      showQuote(undefined, { hint: 'The price is not known yet. Please try again in a moment.' })
    // What the form or the trading service has said stays, and is read out with the field.
    else $(this.#problem.includes('uration') || this.#problem.includes('ticks') ? '#duration' : '#stake').focus()
  }

  #bought(order, { contract_id: id, buy_price, purchase_time, balance_after }) {
    const stake = toNumber(buy_price) ?? order.price
    this.#contracts.add({ ...order, id, stake, at: Number(purchase_time) * 1000 })
    this.#showBalance(this.#account.id, { balance: balance_after, currency: order.currency })
  }

  #notBought(order, error) {
    const { outcome, reply, message } = error
    const show = (contract) => order.account === this.#account && this.#contracts.add(contract)
    if (outcome === 'unknown') findOut(order, error, show)
    else if (reply) notice({ key: 'buy', kind: 'error', text: `Nothing was bought. ${message}`, area: AREA })
    else notSent('bought')
  }
}

export const trade = new Trade()
