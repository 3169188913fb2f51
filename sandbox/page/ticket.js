/** The form of the Demo trade card: what the user wants to buy, and the quote for it. */
import { $, setText, setUsable } from './dom.js'
import { clock, money, signed } from './format.js'

const MAX_DURATION = { t: 10, m: 60 }

/** @returns the fields of a proposal, or { problem } */
export function readTicket() {
  const amount = $('#stake').valueAsNumber
  const duration = $('#duration').valueAsNumber
  const duration_unit = $('#duration-unit').value
  const max = MAX_DURATION[duration_unit]
  $('#duration').max = max
  if (!(amount > 0)) return { problem: 'Enter a stake above zero.' }
  if (!Number.isInteger(duration) || duration < 1 || duration > max)
    return { problem: `Enter 1 to ${max} ${duration_unit === 't' ? 'ticks' : 'minutes'}.` }
  return { amount, duration, duration_unit, contract_type: new FormData($('#ticket')).get('contract') }
}

/**
 * Shows a quote, { type, price, payout, currency }, or none.
 * @param problem why there is none
 * @param hint what the user may expect while there is none
 * @param isUsable whether the connection is there that an order needs
 * @param isBuying whether the reply to an order is awaited
 * @param pause what the operator says of a pause of orders
 */
export function showQuote(quote, { problem = '', hint = '', isUsable = false, isBuying = false, pause }) {
  const profit = quote && quote.payout - quote.price
  setText($('#payout'), quote ? money(quote.payout, quote.currency) : '–')
  setText($('#payout-profit'), quote ? `${signed(profit)} (${Math.round((profit / quote.price) * 100)} %)` : '–')
  setText($('#ticket-problem'), problem || hint || pauseInWords(pause))
  $('#ticket-problem').dataset.kind = problem ? 'problem' : 'hint'
  const button = $('#buy')
  const type = quote?.type ?? new FormData($('#ticket')).get('contract')
  button.dataset.contract = type
  setUsable(button, quote !== undefined && isUsable && pause === undefined)
  const price = quote ? ` for ${money(quote.price, quote.currency)}` : ''
  const offer = `Buy ${type === 'PUT' ? 'fall' : 'rise'}${price}`
  setText(button, isBuying ? 'Buying' : pause ? 'Orders are paused' : offer)
}

/** Empty without a pause. */
function pauseInWords(pause) {
  if (pause === undefined) return ''
  const { message = 'The operator has paused orders.', until } = pause
  return until === undefined ? message : `${message} Until ${clock(until * 1000).slice(0, 5)}.`
}
