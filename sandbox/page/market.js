/** The Live price card: markets, prices and the chart, over the public socket. Works without a login. */
import { client } from './bff.js'
import { PriceChart } from './chart.js'
import { ConnectionLine } from './connection.js'
import { $, el, setText } from './dom.js'
import { change, decimal, readable, toNumber } from './format.js'
import { HISTORY_TICKS, PriceHistory } from './price-history.js'
import { remember, remembered } from './remembered.js'

const PREFERRED = ['R_100', '1HZ100V', 'R_50']
const ARROWS = { up: '▲', down: '▼', flat: '' }
const RETRY_MS = 10_000
const FEEDS = {
  shared:
    'The server shares upstream subscriptions among all browsers (PUBLIC_FEED=shared), so a page may subscribe twice.',
  relay:
    'Each public socket has an upstream socket of its own (PUBLIC_FEED=relay), where a second equal subscription is ' +
    'refused as AlreadySubscribed. The browser package then opens another.',
}
/** The length of a candle in seconds, by the range in minutes. */
const CANDLE_SECONDS = { 1: 5, 5: 15, 15: 30, 60: 120 }

class Market extends EventTarget {
  symbol
  #names = new Map()
  #digits = new Map()
  #history = new PriceHistory()
  #chart
  #socket
  #series
  #ticks = 0

  start() {
    this.#chart = new PriceChart($('#chart'))
    this.#socket = client.publicSocket()
    new ConnectionLine('market').follow(this.#socket)
    $('#symbol').addEventListener('change', (event) => this.#choose(event.target.value))
    for (const name of ['range', 'style']) {
      const chosen = $(`#chart-form input[name=${name}][value="${remembered(name)}"]`)
      if (chosen) chosen.checked = true
    }
    $('#chart-form').addEventListener('change', ({ target }) => {
      remember(target.name, target.value)
      this.#show()
    })
    this.#loadSymbols()
    this.#socket.onStatus(() => this.#sayFeed())
  }

  /** Which of both feeds it is matters to a page: only one of them refuses an equal subscription. Only the demo knows. */
  async #sayFeed() {
    if (this.#socket.status().state !== 'open' || $('#feed').textContent !== '') return
    const { sandbox_sharing: sharing } = await this.#socket.request({ sandbox_sharing: 1 }).catch(() => ({}))
    setText($('#feed'), FEEDS[sharing?.feed] ?? '')
  }

  mark(mark) {
    this.#chart.mark(mark)
  }

  name(symbol = this.symbol) {
    return this.#names.get(symbol) ?? symbol ?? ''
  }

  /** A price of this symbol with its decimals. */
  price(value, symbol = this.symbol) {
    return decimal(value, this.#digits.get(symbol) ?? 2)
  }

  /** Asks until there is a response. Each request waits for a connection. */
  async #loadSymbols() {
    for (;;) {
      try {
        return this.#fill(await this.#socket.request({ active_symbols: 'brief' }))
      } catch (error) {
        if (error.code === 'ended') return
        if (!error.reply) continue
        setText($('#price-change'), error.message)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  #fill({ active_symbols: list }) {
    const groups = new Map()
    for (const item of list ?? []) {
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
    if (open.length === 0) return setText($('#price-change'), 'No market is open.')
    const labelled = [...groups].map(([label, options]) => el('optgroup', { label: readable(label) }, ...options))
    $('#symbol').replaceChildren(...labelled)
    $('#symbol').disabled = false
    const symbol = [remembered('symbol'), ...PREFERRED].find((each) => open.includes(each)) ?? open[0]
    $('#symbol').value = symbol
    this.#watch(symbol)
  }

  #choose(symbol) {
    remember('symbol', symbol)
    this.#watch(symbol)
  }

  /** Follows a market. Range and style need no request. */
  #watch(symbol) {
    this.#series?.stop()
    this.symbol = symbol
    this.#history.set([])
    this.#chart.show({ points: [] })
    this.#chart.mark(undefined)
    setText($('#price'), '–')
    setText($('#price-arrow'), '')
    setText($('#price-change'), 'Waiting for prices')
    const series = this.#socket.series({ symbol, style: 'ticks', count: HISTORY_TICKS })
    this.#series = series
    series.subscribe(() => this.#take(series.get()))
    this.dispatchEvent(new Event('change'))
  }

  #take({ points, error }) {
    const { last } = this.#history
    this.#history.set(points.map(({ epoch, quote }) => ({ time: epoch * 1000, price: quote })))
    if (error?.reply) return setText($('#price-change'), error.message)
    if (last && points.length > 0) setText($('#price-ticks'), decimal(++this.#ticks, 0))
    this.#show()
  }

  #show() {
    const { last } = this.#history
    if (last === undefined) return
    const form = new FormData($('#chart-form'))
    const [minutes, style] = [Number(form.get('range')), form.get('style')]
    const [spanMs, lengthMs] = [minutes * 60_000, CANDLE_SECONDS[minutes] * 1000]
    const digits = this.#digits.get(this.symbol) ?? 2
    const ticks = this.#history.since(spanMs)
    const points = style === 'candles' ? this.#history.candles(spanMs, lengthMs) : ticks
    this.#chart.show({ points, digits, style })
    this.#summarise(ticks, digits)
  }

  /** The change in the range, whose arrow and colour are those of the figure. */
  #summarise(ticks, digits) {
    const [first, last] = [ticks[0], ticks.at(-1)]
    const { text, tone } = change(last.price - first.price, digits)
    const percent = change(((last.price - first.price) / first.price) * 100, 2).text
    const minutes = Math.max(1, Math.round((last.time - first.time) / 60_000))
    const summary = `${text} (${percent} %) in ${minutes} min`
    setText($('#price'), decimal(last.price, digits))
    setText($('#price-arrow'), ARROWS[tone])
    setText($('#price-change'), summary)
    $('#price-box').dataset.tone = tone
    let [low, high] = [Infinity, -Infinity]
    for (const { price } of ticks) [low, high] = [Math.min(low, price), Math.max(high, price)]
    const range = `between ${decimal(low, digits)} and ${decimal(high, digits)}`
    setText($('#chart-summary'), `${this.name()}: now ${decimal(last.price, digits)}, ${range}, ${summary}`)
  }
}

export const market = new Market()

/** A pip of 0.01 and a pip_size of 2 both mean two decimals. */
function digitsOf(pip) {
  const number = toNumber(pip)
  if (number === undefined || number <= 0) return 2
  return Math.min(8, number < 1 ? Math.round(-Math.log10(number)) : Math.round(number))
}
