import type { Operations, PublicSocket, TradingSocket } from 'trading-bff-client'
import { series } from 'trading-bff-client/series'

// Nothing runs this. Each compiler must accept it, and so find an error after every `@ts-expect-error`.

declare module 'trading-bff-client' {
  /** A member that this trading service sends. */
  interface Tick {
    volume?: number
  }
}

/** What infers its types from the operation. */
export async function known(market: PublicSocket, trading: TradingSocket, symbol: string): Promise<unknown[]> {
  const { history } = await market.request({ ticks_history: symbol, end: 'latest', count: 10, style: 'ticks' })
  const prices: number[] | undefined = history?.prices
  const { proposal } = await market.request({
    proposal: 1,
    contract_type: 'CALL',
    currency: 'USD',
    underlying_symbol: symbol,
    amount: 10,
    basis: 'stake',
    duration: 5,
    duration_unit: 't',
    limit_order: { stop_loss: 1 },
  })
  const { buy } = await trading.command({ buy: proposal.id, price: proposal.ask_price })
  const id: number | string = buy.contract_id
  trading.subscribe({ proposal_open_contract: 1, contract_id: id }, () => undefined)
  await market.request({ ticks: ['R_100', 'R_50'] })
  const several = ['R_100', 'R_50']
  await market.request({ ticks: several, passthrough: { mine: { deep: [1] } } })
  market.subscribe({ ticks: symbol }, ({ tick }) => tick.quote.toFixed(2))
  trading.subscribe({ transaction: 1 }, ({ transaction }) => transaction.amount)
  const own: { ticks: string } = { ticks: symbol }
  market.subscribe(own, () => undefined)
  const order: Operations['buy']['request'] = {
    buy: 1,
    price: 10,
    parameters: { contract_type: 'CALL', currency: 'USD', underlying_symbol: symbol },
  }
  await trading.command(order)
  const chart = market.series({ symbol, style: 'candles', granularity: 60 })
  const close: number | undefined = chart.get().points.at(-1)?.close
  const quote: number | undefined = series(market, { symbol, style: 'ticks', count: 10 }).get().points[0]?.quote
  market.subscribe({ ticks: symbol }, ({ tick, echo_req }) => [tick.volume?.toFixed(), echo_req?.['ticks']])
  return [prices, id, close, quote]
}

/** Operations that are not described, typed by hand. */
export async function undescribed(market: PublicSocket): Promise<number> {
  market.subscribe<{ rate: number }>({ exchange_rate: 'EUR', subscribe: 1 }, ({ rate }) => rate.toFixed())
  const { answer } = await market.request<{ answer: number }>({ my_operation: 1 })
  return answer
}

export async function wrong(market: PublicSocket, trading: TradingSocket): Promise<void> {
  // @ts-expect-error a misspelt operation
  await market.request({ tikcs: 'R_100' })
  // @ts-expect-error the same, although the page says what it expects
  const answer: { tick: number } = await market.request({ tikcs: 'R_100' })
  // @ts-expect-error a misspelt operation
  market.subscribe({ tikcs: 'R_100' }, () => answer)
  // @ts-expect-error a misspelt member
  await market.request({ ticks: 'R_100', subscibe: 1 })
  // @ts-expect-error a member of another operation
  await market.request({ ticks: 'R_100', granularity: 60 })
  // @ts-expect-error a member of another type
  await market.request({ ticks: 1 })
  // @ts-expect-error a value that is not allowed
  await market.request({ ticks_history: 'R_100', end: 'latest', style: 'candels' })
  // @ts-expect-error a member is missing
  await market.request({ ticks_history: 'R_100' })
  const parameters = { contract_type: 'CALL', currency: 'USD', underlying_symbol: 'R_100', amuont: 1 }
  // @ts-expect-error a misspelt member inside another
  await trading.command({ buy: 1, price: 10, parameters })
  // @ts-expect-error a misspelt member of an answer
  market.subscribe({ ticks: 'R_100' }, ({ tikc }) => tikc)
  // @ts-expect-error a misspelt member inside of one
  market.subscribe({ ticks: 'R_100' }, ({ tick }) => tick.qoute)
  const { buy } = await trading.command({ buy: 'an id', price: 1 })
  // @ts-expect-error the same of a command
  await trading.command({ sell: buy.contractid, price: 0 })
  // @ts-expect-error the price is a number
  await trading.command({ buy: 'an id', price: '10' })
  // @ts-expect-error the type of a known operation cannot be given by hand
  market.subscribe<{ lies: boolean }>({ ticks: 'R_100' }, ({ lies }) => lies)
  // @ts-expect-error no stream
  trading.subscribe({ portfolio: 1 }, () => undefined)
  // @ts-expect-error a command
  trading.subscribe({ buy: 'an id', price: 1 }, () => undefined)
  // @ts-expect-error a quote is a number
  market.subscribe({ ticks: 'R_100' }, ({ tick }) => tick.quote.length)
  // @ts-expect-error ticks have no close
  market.series({ symbol: 'R_100', style: 'ticks' }).get().points.at(-1)?.close
  // @ts-expect-error no such style
  market.series({ symbol: 'R_100', style: 'lines' })
}
