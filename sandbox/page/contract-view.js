/** How a contract looks: the panel of the newest one, and a row of the list. */
import { $, el, setText, setUsable } from './dom.js'
import { clock, duration, money, signed, toneOf, toNumber } from './format.js'
import { market } from './market.js'
import { session } from './session.js'

const TYPES = { CALL: { name: 'Rise', arrow: '▲', tone: 'up' }, PUT: { name: 'Fall', arrow: '▼', tone: 'down' } }

/** How a contract type is shown. One that was bought in another tab is unknown for a moment. */
const typeOf = (type) => TYPES[type] ?? { name: type ?? 'Contract', arrow: '', tone: 'flat' }

/** Rise of Volatility 100 Index for 10.00 USD */
export function titleOf({ type, symbol, stake, currency }) {
  return `${typeOf(type).name} of ${market.name(symbol)} for ${money(stake, currency)}`
}

/** Shows the newest contract below the form; undefined: none. */
export function drawPanel(contract, isConnected, onSell) {
  const panel = $('#contract')
  panel.dataset.result = contract?.result ?? 'none'
  const isOpen = contract?.result === 'open'
  setText($('#trade-status'), contract ? statusOf(contract) : 'No contract yet')
  setText($('#trade-detail'), contract ? detailOf(contract) : 'Buy one to follow it here.')
  const progress = isOpen ? progressOf(contract.update) : undefined
  $('#trade-progress').hidden = progress === undefined
  if (progress !== undefined) $('#trade-progress').value = progress
  drawSell($('#trade-sell'), contract, isConnected, $('#trade-status'))
  $('#trade-sell').onclick = () => onSell(contract)
  drawMark(isOpen ? contract : undefined)
}

/** Marks the entry of an open contract on the chart of its market. */
function drawMark(contract) {
  const entry = contract && contract.symbol === market.symbol ? entryOf(contract.update) : undefined
  const { name, arrow, tone } = typeOf(contract?.type)
  market.mark(entry === undefined ? undefined : { price: entry, label: `${arrow} ${name} from`, tone })
}

/** An empty row of the list. */
export function rowOf(contract, onSell) {
  const onclick = () => onSell(contract)
  return el(
    'li',
    { class: 'row trade', 'data-testid': 'result-row', tabindex: '-1' },
    el('span', { class: 'title' }),
    el('span', { class: 'amount' }),
    el('span', { class: 'fine' }),
    el('span', { class: 'badge result' }),
    el('button', { type: 'button', class: 'button small', 'data-testid': 'result-sell', onclick }),
  )
}

/** Shows a contract in its row. */
export function drawRow(row, contract, isConnected) {
  const { type, stake, symbol, at, result, profit, currency } = contract
  const { name, arrow } = typeOf(type)
  const [title, amount, fine] = row.children
  row.dataset.result = result
  setText(title, `${arrow} ${name} for ${money(stake, currency)}`.trim())
  setText(amount, profit === undefined ? '' : signed(profit, currency))
  amount.dataset.tone = toneOf(profit)
  setText(fine, [`${market.name(symbol)} at ${clock(at)}`, spotsOf(contract)].filter(Boolean).join(', '))
  setText(row.querySelector('.badge'), result)
  drawSell(row.querySelector('button'), contract, isConnected, row)
}

/** The button that sells an open contract. When it goes, `next` gets the focus it had. */
function drawSell(button, contract, isConnected, next) {
  const { result, bid, currency, isSelling, update } = contract ?? {}
  const isShown = result === 'open' && bid !== undefined && update.is_valid_to_sell !== 0
  if (!isShown && document.activeElement === button) next.focus()
  button.hidden = !isShown
  if (!isShown) return
  const isPaused = session.ordersPaused?.closing === false
  setUsable(button, isConnected && !isSelling && !isPaused)
  if (isSelling) setText(button, 'Selling')
  else if (!isConnected) setText(button, 'Sell once connected')
  else setText(button, isPaused ? 'Selling is paused' : `Sell for ${money(bid, currency)}`)
}

function statusOf({ result, profit, currency, type }) {
  return result === 'open' ? `${typeOf(type).name} open` : `Contract ${result}: ${signed(profit, currency)}`
}

function detailOf(contract) {
  const { result, profit, currency, update } = contract
  const spots = spotsOf(contract)
  if (result !== 'open') return [spots && `The price went ${spots}.`, update.longcode].filter(Boolean).join(' ')
  if (profit === undefined) return titleOf(contract)
  return [`${signed(profit, currency)} now`, spots, remaining(update)].filter(Boolean).join(', ')
}

/** How long the contract still runs, in ticks or in time. */
function remaining(update) {
  const ticks = ticksOf(update)
  if (ticks !== undefined) return `tick ${ticks.passed} of ${ticks.total}`
  const now = toNumber(update.current_spot_time) ?? toNumber(update.date_start)
  const leftMs = (toNumber(update.date_expiry) - now) * 1000
  return leftMs > 0 ? `ends in ${duration(leftMs)}` : ''
}

/** The prices at which the contract started and ended, as far as they are known. */
function spotsOf({ symbol, result, update }) {
  const [entry, exit] = [entryOf(update), toNumber(update.exit_spot ?? update.exit_tick)]
  if (entry === undefined) return ''
  const start = market.price(entry, symbol)
  return result === 'open' || exit === undefined ? `entry ${start}` : `from ${start} to ${market.price(exit, symbol)}`
}

const entryOf = (update) => toNumber(update.entry_spot ?? update.entry_tick)

function ticksOf({ tick_count, tick_passed, tick_stream }) {
  const total = toNumber(tick_count)
  if (!(total > 0) || (tick_passed ?? tick_stream) === undefined) return undefined
  return {
    total,
    passed: Math.min(total, toNumber(tick_passed) ?? Math.max(0, (tick_stream?.length ?? 1) - 1)),
  }
}

function progressOf(update) {
  const ticks = ticksOf(update)
  if (ticks !== undefined) return ticks.passed / ticks.total
  const start = toNumber(update.date_start)
  const end = toNumber(update.date_expiry)
  const now = toNumber(update.current_spot_time)
  return end > start && now !== undefined ? Math.min(1, Math.max(0, (now - start) / (end - start))) : undefined
}
