import { test } from 'tap'
import { series } from '../../client/dist/client/series.js'
import { PriceFeed } from '../support/client/price-feed.ts'

/** So many turns later, what a refused request leads to has happened. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await Promise.resolve()
}

await test('a series has no points at first, and asks for as many as its page wants, of its symbol and style', (t) => {
  const common = { ticks_history: 'R_100', end: 'latest', count: 10, adjust_start_time: 1 }
  for (const [style, message] of [
    ['ticks', { ...common, style: 'ticks' }],
    ['candles', { ...common, style: 'candles', granularity: 120 }],
  ] as const) {
    const feed = new PriceFeed()
    const chart = series(feed.socket, { symbol: 'R_100', style, granularity: 120, count: 10 })
    t.same(chart.get(), { points: [] })
    feed.begin({})
    t.same(feed.asked[0]?.message, message)
    chart.stop()
  }
  t.end()
})

await test('a history that is refused says why, and one that is lost does not', async (t) => {
  for (const [reason, isShown] of [
    [{ code: 'RateLimit', reply: {} }, true],
    [{ code: 'closed' }, true],
    [{ code: 'timeout' }, false],
  ] as const) {
    const feed = new PriceFeed()
    const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks' })
    feed.begin({})
    const error = Object.assign(new Error(reason.code), reason)
    feed.asked[0]?.refuse(error)
    await settle()
    t.equal(chart.get().error, isShown ? error : undefined, reason.code)
    chart.stop()
  }
})

await test('a refusal is final by its whole name', (t) => {
  for (const [code, asked] of [
    ['ended', 0],
    ['Suspended', 1],
    ['closedForNow', 1],
  ] as const) {
    const feed = new PriceFeed()
    const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks' })
    feed.refuse(code)
    t.equal(feed.asked.length, asked, code)
    chart.stop()
  }
  t.end()
})
