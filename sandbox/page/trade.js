/**
 * The Demo trade card: one trading socket for the chosen demo account, a quote that follows the form, and buying.
 * A buy is sent once. If its response is lost, the page checks the portfolio after reconnecting instead of buying again.
 */
import { accounts } from './accounts.js'
import { Contracts } from './contracts.js'
import { $, money, setText, signed, toNumber } from './dom.js'
import { market, showConnection } from './market.js'
import { notice } from './notices.js'
import { session } from './session.js'
import { Channel, ConnectionLost } from './socket.js'

const QUOTE_DELAY_MS = 300
const MAX_DURATION = { t: 10, m: 60 }

class Trade {
  #account
  #channel
  #contracts = new Contracts()
  #quote
  #quoteTurn = 0
  #quoteTimer
  #quoted = false
  #buying = false
  #lostBuy

  start() {
    accounts.addEventListener('change', () => this.#accountChanged())
    market.addEventListener('change', () => this.#quoteSoon())
    $('#ticket').addEventListener('input', () => this.#quoteSoon())
    $('#ticket').addEventListener('submit', (event) => {
      event.preventDefault()
      this.#buy()
    })
    $('#trade-retry').addEventListener('click', () => this.#channel?.retryNow())
  }

  pause() {
    this.#channel?.stop()
  }

  #accountChanged() {
    this.#channel?.stop()
    this.#channel = undefined
    this.#account = accounts.chosen
    this.#lostBuy = undefined
    this.#buying = false
    this.#contracts.clear()
    this.#showQuote(undefined)
    setText($('#trade-balance'), '–')
    const { id, currency } = this.#account ?? {}
    $('#trade-empty').hidden = id !== undefined
    $('#trade-desk').hidden = id === undefined
    setText($('#trade-account'), id ?? '')
    setText($('#stake-currency'), currency ?? 'USD')
    if (id !== undefined) this.#connect(id)
  }

  #connect(id) {
    this.#channel = new Channel(`/ws/trading/${encodeURIComponent(id)}`, {
      open: (channel) => this.#opened(channel, id),
      state: (state) => this.#connection(state),
      sessionEnded: async () => (await session.check()) === 'authenticated',
    })
    this.#channel.start()
  }

  #connection(state) {
    showConnection('trade', state)
    if (state.state !== 'open') this.#showQuote(undefined, 'Quotes appear once connected.')
  }

  #opened(channel, id) {
    this.#quoted = false
    const onMessage = ({ balance }) => this.#showBalance(id, balance)
    channel.request({ balance: 1, subscribe: 1 }, { onMessage }).catch(() => {})
    this.#contracts.attach(channel)
    if (this.#lostBuy !== undefined) this.#findLostBuy(channel)
    this.#quoteSoon(0)
  }

  #showBalance(id, balance) {
    if (toNumber(balance?.balance) === undefined) return
    setText($('#trade-balance'), money(balance.balance, balance.currency ?? this.#account?.currency))
    accounts.setBalance(id, balance.balance)
  }

  #quoteSoon(delay = QUOTE_DELAY_MS) {
    clearTimeout(this.#quoteTimer)
    this.#quoteTurn++
    this.#showQuote(undefined)
    $('#duration').max = MAX_DURATION[$('#duration-unit').value]
    this.#quoteTimer = setTimeout(() => this.#askQuote(), delay)
  }

  async #askQuote() {
    const turn = ++this.#quoteTurn
    const channel = this.#channel
    const form = readForm()
    if (!channel?.isOpen || market.symbol === undefined) return
    if (this.#quoted) channel.tell({ forget_all: 'proposal' })
    this.#quoted = false
    if (form.problem !== undefined) return this.#showQuote(undefined, form.problem)
    this.#quoted = true
    const order = { type: form.contract_type, symbol: market.symbol, currency: this.#account.currency }
    const request = {
      proposal: 1,
      ...form,
      basis: 'stake',
      currency: order.currency,
      underlying_symbol: order.symbol,
      subscribe: 1,
    }
    const onMessage = (message) => turn === this.#quoteTurn && this.#takeQuote(order, message)
    try {
      await channel.request(request, { onMessage })
    } catch (error) {
      if (turn === this.#quoteTurn && !(error instanceof ConnectionLost)) this.#showQuote(undefined, error.message)
    }
  }

  #takeQuote(order, { error, proposal }) {
    if (error !== undefined) this.#showQuote(undefined, error.message ?? 'There is no quote for this contract.')
    else if (proposal?.id !== undefined) {
      this.#showQuote({
        ...order,
        id: proposal.id,
        price: toNumber(proposal.ask_price),
        payout: toNumber(proposal.payout),
      })
    }
    return error === undefined
  }

  #showQuote(quote, problem = '') {
    this.#quote = quote
    const profit = quote && quote.payout - quote.price
    setText($('#payout'), quote ? money(quote.payout, quote.currency) : '–')
    setText($('#payout-profit'), quote ? `${signed(profit)} (${Math.round((profit / quote.price) * 100)} %)` : '–')
    setText($('#ticket-problem'), problem)
    this.#showBuy()
  }

  #showBuy() {
    const button = $('#buy')
    const type = this.#quote?.type ?? new FormData($('#ticket')).get('contract')
    button.dataset.contract = type
    button.disabled = this.#quote === undefined || this.#buying
    const price = this.#quote ? ` for ${money(this.#quote.price, this.#quote.currency)}` : ''
    setText(button, this.#buying ? 'Buying' : `Buy ${type === 'PUT' ? 'fall' : 'rise'}${price}`)
  }

  async #buy() {
    if (this.#quote === undefined || this.#buying || !this.#channel?.isOpen) return
    const { id, price, type, symbol, currency } = this.#quote
    const order = { type, symbol, stake: price, currency, at: Date.now() }
    const channel = this.#channel
    this.#buying = true
    this.#showBuy()
    try {
      const answer = await channel.request({ buy: id, price }, { timeout: 0 })
      if (channel === this.#channel) this.#bought(order, answer)
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      if (channel === this.#channel) this.#buyLost(order)
    } finally {
      if (channel === this.#channel) {
        this.#buying = false
        this.#quoteSoon(0)
      }
    }
  }

  #bought(order, { error, buy }) {
    if (error !== undefined || buy?.contract_id === undefined) {
      return notice({
        key: 'buy',
        kind: 'error',
        text: `Nothing was bought. ${error?.message ?? 'The response was not understood.'}`,
      })
    }
    const stake = toNumber(buy.buy_price) ?? order.stake
    if (!this.#contracts.knows(buy.contract_id)) this.#contracts.add({ ...order, id: buy.contract_id, stake })
    this.#showBalance(this.#account.id, { balance: buy.balance_after, currency: order.currency })
  }

  #buyLost(order) {
    this.#lostBuy = order
    notice({
      key: 'buy',
      kind: 'error',
      text: 'The connection broke before the response to your order. The order is not sent again; your portfolio is checked after reconnecting.',
    })
  }

  /** Searches the portfolio for a contract that the lost order may have created. */
  async #findLostBuy(channel) {
    const order = this.#lostBuy
    try {
      const { error, portfolio } = await channel.request({ portfolio: 1 })
      if (error !== undefined) throw new Error(error.message)
      this.#lostBuy = undefined
      const isIt = (item) =>
        item.contract_type === order.type &&
        !this.#contracts.knows(item.contract_id) &&
        Number(item.purchase_time) * 1000 > order.at - 60_000
      const found = portfolio?.contracts?.find(isIt)
      if (found !== undefined) this.#contracts.add({ ...order, id: found.contract_id })
      const text = found
        ? 'Your order was executed before the connection broke.'
        : 'Your portfolio has no such open contract. Check your balance before you order again.'
      notice({ key: 'buy', kind: found ? 'success' : 'info', text })
    } catch (error) {
      if (error instanceof ConnectionLost) return
      notice({
        key: 'buy',
        kind: 'error',
        text: 'It is unknown whether your order was executed. Check your balance before you order again.',
      })
    }
  }
}

export const trade = new Trade()

function readForm() {
  const amount = $('#stake').valueAsNumber
  const duration = $('#duration').valueAsNumber
  const duration_unit = $('#duration-unit').value
  if (!(amount > 0)) return { problem: 'Enter a stake above zero.' }
  if (!Number.isInteger(duration) || duration < 1 || duration > MAX_DURATION[duration_unit]) {
    return {
      problem: `Enter 1 to ${MAX_DURATION[duration_unit]} ${duration_unit === 't' ? 'ticks' : 'minutes'}.`,
    }
  }
  return { amount, duration, duration_unit, contract_type: new FormData($('#ticket')).get('contract') }
}
