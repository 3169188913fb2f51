/** Follows bought contracts until they are settled, shows the newest one, and keeps the list of recent trades. */
import { $, clock, duration, el, money, setText, signed, toNumber } from './dom.js'
import { market } from './market.js'

const SHOWN = 8
const RESULTS = new Set(['won', 'lost', 'sold', 'cancelled'])

export class Contracts {
  #channel
  #all = []

  /** Follows the contracts that are still open on a new connection. */
  attach(channel) {
    this.#channel = channel
    for (const contract of this.#all) if (contract.result === 'open') this.#follow(contract)
  }

  knows(id) {
    return this.#all.some((contract) => contract.id === id)
  }

  clear() {
    this.#all = []
    this.#channel = undefined
    market.mark(undefined)
    this.#drawList()
    setText($('#trade-status'), 'No contract yet')
    setText($('#trade-detail'), 'Buy one to follow it here.')
    $('#contract').dataset.result = 'none'
    $('#trade-progress').hidden = true
  }

  add({ id, type, symbol, stake, currency, at = Date.now() }) {
    const contract = {
      id,
      type,
      symbol,
      stake,
      currency,
      at,
      result: 'open',
      profit: undefined,
      row: undefined,
    }
    this.#all.unshift(contract)
    this.#all.length = Math.min(this.#all.length, SHOWN)
    this.#drawList()
    this.#drawNewest(contract, {})
    this.#follow(contract)
  }

  #follow(contract) {
    const onMessage = (message) => this.#take(contract, message)
    this.#channel
      ?.request({ proposal_open_contract: 1, contract_id: contract.id, subscribe: 1 }, { onMessage })
      .catch(() => {})
  }

  #take(contract, { error, proposal_open_contract: update, subscription }) {
    if (error !== undefined) {
      if (contract === this.#all[0]) setText($('#trade-detail'), error.message ?? 'The contract cannot be followed.')
      return false
    }
    if (update?.contract_id === undefined || contract.result !== 'open') return contract.result === 'open'
    contract.profit = toNumber(update.profit) ?? contract.profit
    contract.result = resultOf(update)
    if (contract === this.#all[0]) this.#drawNewest(contract, update)
    this.#drawRow(contract)
    if (contract.result === 'open') return true
    if (subscription?.id !== undefined) this.#channel?.tell({ forget: subscription.id })
    return false
  }

  #drawNewest(contract, update) {
    const { result, profit, currency, type } = contract
    const open = result === 'open'
    setText($('#trade-status'), open ? 'Contract open' : `Contract ${result}: ${signed(profit, currency)}`)
    setText($('#trade-detail'), open ? detail(contract, update) : (update.longcode ?? detail(contract, update)))
    $('#contract').dataset.result = result
    const progress = progressOf(update)
    $('#trade-progress').hidden = !open || progress === undefined
    if (progress !== undefined) $('#trade-progress').value = progress
    const entry = toNumber(update.entry_spot ?? update.entry_tick)
    const onChart = open && entry !== undefined && contract.symbol === market.symbol
    market.mark(onChart ? { price: entry, rise: type === 'CALL', label: `${arrow(type)} Entry` } : undefined)
  }

  #drawList() {
    $('#results-empty').hidden = this.#all.length > 0
    $('#results').hidden = this.#all.length === 0
    for (const contract of this.#all) {
      contract.row ??= el(
        'li',
        { class: 'row trade', 'data-testid': 'result-row' },
        el(
          'span',
          {},
          `${arrow(contract.type)} ${nameOf(contract.type)} for ${money(contract.stake, contract.currency)}`,
        ),
        el('span', { class: 'amount' }),
        el('span', { class: 'fine' }, `${market.name(contract.symbol)}, ${clock(contract.at)}`),
        el('span', { class: 'badge result' }),
      )
      this.#drawRow(contract)
    }
    $('#results').replaceChildren(...this.#all.map((contract) => contract.row))
  }

  #drawRow({ row, result, profit, currency }) {
    row.dataset.result = result
    setText(row.querySelector('.result'), result)
    setText(row.querySelector('.amount'), profit === undefined ? '' : signed(profit, currency))
  }
}

function resultOf({ status, is_sold, is_expired, profit }) {
  if (RESULTS.has(status)) return status
  const settled = is_sold === 1 || is_sold === true || (is_expired === 1 && is_sold === undefined)
  if (!settled) return 'open'
  return toNumber(profit) > 0 ? 'won' : 'lost'
}

function detail({ profit, currency, type, stake }, update) {
  const value =
    profit === undefined ? `${nameOf(type)} for ${money(stake, currency)}` : `${signed(profit, currency)} now`
  const ticks = ticksOf(update)
  const ending =
    toNumber(update.date_expiry) * 1000 - (toNumber(update.current_spot_time) ?? toNumber(update.date_start)) * 1000
  if (ticks !== undefined) return `${value}, tick ${ticks.passed} of ${ticks.total}`
  return ending > 0 ? `${value}, ends in ${duration(ending)}` : value
}

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

const nameOf = (type) => (type === 'PUT' ? 'Fall' : 'Rise')
const arrow = (type) => (type === 'PUT' ? '▼' : '▲')
