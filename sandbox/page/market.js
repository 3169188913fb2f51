/** The Live price card: markets, history and ticks over the public socket. Works without a login. */
import { PriceChart } from './chart.js'
import { $, el, readable, setText, signed, toNumber } from './dom.js'
import { ConnectionLost, Channel } from './socket.js'

const HISTORY = 120
const PREFERRED = ['R_100', '1HZ100V', 'R_50']
const ARROWS = { up: '▲', down: '▼', flat: '' }

class Market extends EventTarget {
  symbol
  #names = new Map()
  #digits = new Map()
  #chart
  #channel
  #turn = 0
  #ticks = 0
  #watching = false

  start() {
    this.#chart = new PriceChart($('#chart'))
    this.#channel = new Channel('/ws/public', {
      open: () => this.#opened(),
      state: (state) => showConnection('market', state),
    })
    $('#market-retry').addEventListener('click', () => this.#channel.retryNow())
    $('#symbol').addEventListener('change', (event) => this.#choose(event.target.value))
    this.#channel.start()
  }

  pause() {
    this.#channel.stop()
  }

  resume() {
    this.#channel.start()
  }

  mark(mark) {
    this.#chart.mark(mark)
  }

  name(symbol = this.symbol) {
    return this.#names.get(symbol) ?? symbol ?? ''
  }

  async #opened() {
    this.#watching = false
    try {
      if (this.#names.size === 0) this.#fill(await this.#channel.request({ active_symbols: 'brief' }))
      await this.#watch()
    } catch (error) {
      if (!(error instanceof ConnectionLost)) setText($('#price-change'), error.message)
    }
  }

  #fill({ error, active_symbols: list }) {
    if (error !== undefined || !Array.isArray(list))
      throw new Error(error?.message ?? 'The trading service offers no markets.')
    const groups = new Map()
    for (const item of list) {
      const symbol = item.underlying_symbol ?? item.symbol
      if (typeof symbol !== 'string') continue
      const name = item.underlying_symbol_name ?? item.display_name ?? symbol
      const group =
        item.submarket_display_name ?? item.market_display_name ?? item.submarket ?? item.market ?? 'Markets'
      this.#names.set(symbol, name)
      this.#digits.set(symbol, digitsOf(item.pip ?? item.pip_size))
      const options = groups.get(group) ?? groups.set(group, []).get(group)
      options.push(el('option', { value: symbol, disabled: item.exchange_is_open === 0 }, name))
    }
    const open = [...groups.values()]
      .flat()
      .filter((option) => !option.disabled)
      .map((option) => option.value)
    const labelled = [...groups].map(([label, options]) => el('optgroup', { label: readable(label) }, ...options))
    $('#symbol').replaceChildren(...labelled)
    $('#symbol').disabled = false
    this.symbol = PREFERRED.find((symbol) => open.includes(symbol)) ?? open[0]
    $('#symbol').value = this.symbol
    this.dispatchEvent(new Event('change'))
  }

  async #choose(symbol) {
    this.symbol = symbol
    this.#chart.mark(undefined)
    this.dispatchEvent(new Event('change'))
    if (this.#channel.isOpen) await this.#watch().catch(() => {})
  }

  /** Subscribes to the history and the ticks that follow, in one request, after ending the former subscription. */
  async #watch() {
    const turn = ++this.#turn
    const { symbol } = this
    if (this.#watching) this.#channel.tell({ forget_all: 'ticks' })
    this.#watching = true
    const request = {
      ticks_history: symbol,
      adjust_start_time: 1,
      count: HISTORY,
      end: 'latest',
      start: 1,
      style: 'ticks',
      subscribe: 1,
    }
    await this.#channel.request(request, {
      onMessage: (message) => turn === this.#turn && this.#take(symbol, message),
    })
  }

  #take(symbol, { error, history, tick, pip_size }) {
    if (error !== undefined) setText($('#price-change'), error.message ?? 'This market is not available.')
    if (Array.isArray(history?.prices)) this.#takeHistory(symbol, history, pip_size)
    if (tick?.quote !== undefined) this.#takeTick(tick)
    return error === undefined
  }

  #takeHistory(symbol, { prices, times }, pipSize) {
    if (pipSize !== undefined) this.#digits.set(symbol, digitsOf(pipSize))
    const points = prices.map((price, index) => ({ time: Number(times[index]) * 1000, price: Number(price) }))
    this.#chart.set(points, this.#digits.get(symbol) ?? 2)
    this.#show()
  }

  #takeTick({ quote, epoch }) {
    const point = { time: Number(epoch) * 1000, price: Number(quote) }
    if (point.time < (this.#chart.points.at(-1)?.time ?? 0)) return
    this.#chart.push(point)
    this.#ticks++
    setText($('#price-ticks'), String(this.#ticks))
    this.#show()
  }

  #show() {
    const points = this.#chart.points
    const last = points.at(-1)
    if (last === undefined) return
    const digits = this.#digits.get(this.symbol) ?? 2
    const step = last.price - (points.at(-2)?.price ?? last.price)
    const change = last.price - points[0].price
    const minutes = Math.max(1, Math.round((last.time - points[0].time) / 60_000))
    const direction = step > 0 ? 'up' : step < 0 ? 'down' : 'flat'
    const percent = signed(((change / points[0].price) * 100).toFixed(2))
    const summary = `${signed(change.toFixed(digits))} (${percent} %) in ${minutes} min`
    setText($('#price'), last.price.toFixed(digits))
    setText($('#price-arrow'), ARROWS[direction])
    setText($('#price-change'), summary)
    $('#price-box').dataset.direction = direction
    const prices = points.map((point) => point.price)
    const range = `between ${Math.min(...prices).toFixed(digits)} and ${Math.max(...prices).toFixed(digits)}`
    $('#chart').setAttribute(
      'aria-label',
      `Price chart of ${this.name()}: now ${last.price.toFixed(digits)}, ${range}, ${summary}`,
    )
  }
}

export const market = new Market()

/** Shows the state of a connection in the header of its card, with a button while it waits. */
export function showConnection(card, { state, text }) {
  const line = $(`#${card}-state`)
  setText(line, text)
  line.dataset.state = state
  line.closest('.card').dataset.connection = state
  $(`#${card}-retry`).hidden = state !== 'waiting'
}

/** A pip of 0.01 and a pip_size of 2 both mean two decimals. */
function digitsOf(pip) {
  const number = toNumber(pip)
  if (number === undefined || number <= 0) return 2
  return Math.min(8, number < 1 ? Math.round(-Math.log10(number)) : Math.round(number))
}
