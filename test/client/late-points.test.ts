import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { series, type CandlePoint, type Point, type Series } from '../../client/dist/client/series.js'
import { PriceFeed } from '../support/client/price-feed.ts'
import { exactly } from '../support/exactly.ts'

const HOUR = 3600

/** A series of prices that has begun at the present second, and its history has arrived. */
async function ticks(
  t: Test,
  feed = new PriceFeed(),
): Promise<{ feed: PriceFeed; chart: Series<Point>; seconds: () => number[] }> {
  const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks', count: 10 })
  t.teardown(() => chart.stop())
  feed.begin({ tick: { epoch: feed.time, quote: 100 } })
  const { time } = feed
  await feed.answer({ history: { times: [time - 1, time], prices: [99, 100] } })
  feed.ticks(1)
  return { feed, chart, seconds: () => chart.get().points.map(({ epoch }) => epoch - time) }
}

/** An open candle. */
const ohlc = (epoch: number, close: unknown = 1) => ({
  ohlc: { open_time: epoch, open: '1', high: '2', low: '0.5', close },
})
const candle = (epoch: number, close: unknown = 1) => ({ epoch, open: '1', high: '2', low: '0.5', close })

/** A series of candles of a minute, whose second one is open. */
async function minutes(t: Test): Promise<{ feed: PriceFeed; chart: Series<CandlePoint>; closes: () => unknown[] }> {
  const feed = new PriceFeed()
  const chart = series(feed.socket, { symbol: 'R_100', style: 'candles', granularity: 60, count: 10 })
  t.teardown(() => chart.stop())
  const { time } = feed
  const candles = [candle(time - 60), candle(time)]
  feed.begin({ candles })
  await feed.answer({ candles })
  return { feed, chart, closes: () => chart.get().points.map(({ epoch, close }) => [(epoch - time) / 60, close]) }
}

await test('a series is in the order of its seconds, whatever arrives late', async (t) => {
  const { feed, seconds, chart } = await ticks(t)
  feed.ticks(3, 2, 4, 3)
  t.same(seconds(), [-1, 0, 1, 2, 3, 3, 4])
  // The stream begins again, and is late before its history has arrived.
  feed.begin({ tick: { epoch: feed.time + 6, quote: 106 } })
  feed.ticks(5, 8, 7)
  t.same(seconds(), [-1, 0, 1, 2, 3, 3, 4], 'the history of the stream before is not its history')
  const times = [4, 5, 6].map((second) => feed.time + second)
  await feed.answer({ history: { times: times.toReversed(), prices: [106, 105, 104] } })
  t.same(seconds(), [0, 1, 2, 3, 3, 4, 5, 6, 7, 8].slice(-10))
  t.equal(chart.get().gap, undefined)
})

await test('candles are in order, too: one that comes late takes its place, and one that is there gets its newest state', async (t) => {
  const { feed, closes } = await minutes(t)
  const { time } = feed
  for (const message of [ohlc(time + 120, 3), ohlc(time + 60, 2), ohlc(time + 120, 4)]) feed.push(message)
  t.same(closes(), [
    [-1, 1],
    [0, 1],
    [1, 2],
    [2, 4],
  ])
})

await test('what is missing or null is no point, and texts are numbers', async (t) => {
  const { feed, chart } = await ticks(t)
  const { time } = feed
  for (const quote of [null, undefined, '', ' ', 'n/a', Infinity, true]) feed.push({ tick: { epoch: time + 2, quote } })
  feed.push({ tick: { quote: 1 } })
  feed.push({ tick: { epoch: String(time + 3), quote: '103.50' } })
  t.same(chart.get().points.at(-1), { epoch: time + 3, quote: 103.5 })
  t.equal(chart.get().points.length, 4)
  feed.begin({ tick: { epoch: time + 4, quote: 1 } })
  const prices = [null, '102.5', 1]
  await feed.answer({ history: { times: [time + 1, time + 2, time + 4, time + 5], prices } })
  t.same(
    chart.get().points.map(({ quote }) => quote),
    [99, 100, 101, 102.5, 1],
  )
  const { feed: market, closes } = await minutes(t)
  for (const close of [null, '', undefined]) market.push(ohlc(market.time + 60, close))
  market.push(ohlc(market.time + 60, '7.5'))
  t.same(closes(), [
    [-1, 1],
    [0, 1],
    [1, 7.5],
  ])
})

await test('a point that is ahead of its time is left out until then, and those after it are not', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { feed, seconds } = await ticks(t)
  feed.ticks(2, HOUR, 3, 60, 4)
  t.same(seconds(), [-1, 0, 1, 2, 3, 4, 60], 'a minute ahead is not ahead')
  t.equal(feed.asksTime, 0)
  feed.time += HOUR
  mock.timers.tick(HOUR * 1000)
  t.same(seconds(), [-1, 0, 1, 2, 3, 4, 60, HOUR])
  feed.begin({ tick: { epoch: feed.time + 1, quote: 1 } })
  t.match(feed.asked, exactly({ message: { start: feed.time } }), 'what was shown since is not asked for')

  const { feed: market, closes } = await minutes(t)
  market.push(ohlc(market.time + HOUR))
  for (const close of [2, 3]) market.push(ohlc(market.time + 60, close))
  t.same(closes(), [
    [-1, 1],
    [0, 1],
    [1, 3],
  ])
  // After a reconnect it asks for what came after the last one that it has shown.
  market.begin({ candles: [candle(market.time + 60, 4)] })
  t.match(market.asked, exactly({ message: { start: market.time + 60 } }))
  await market.answer({ candles: [candle(market.time + 60, 4), candle(market.time + HOUR)] })
  t.same(closes(), [
    [-1, 1],
    [0, 1],
    [1, 4],
  ])
})

await test('while the clock is not known points pass, and the clock is asked for; then those that are ahead are taken back', async (t) => {
  const feed = new PriceFeed()
  feed.knows = false
  const { seconds } = await ticks(t, feed)
  feed.ticks(HOUR, 2)
  t.same(seconds(), [-1, 0, 1, 2, HOUR])
  t.equal(feed.asksTime, 1, 'asked once')
  await feed.answer({ time: feed.time })
  t.same(seconds(), [-1, 0, 1, 2])
  feed.ticks(3, HOUR + 1, 4)
  t.same(seconds(), [-1, 0, 1, 2, 3, 4])
})

for (const [what, disturb] of [
  ['the page was offline', (_feed: PriceFeed, page: EventTarget) => page.dispatchEvent(new Event('offline'))],
  ['the clock was set, or the machine slept', (feed: PriceFeed) => (feed.errorMs = 5000)],
] as const) {
  await test(`after ${what} points pass until the clock was measured again`, async (t) => {
    const page = new EventTarget()
    Object.assign(globalThis, { addEventListener: page.addEventListener.bind(page) })
    t.teardown(() => Reflect.deleteProperty(globalThis, 'addEventListener'))
    const { feed, seconds } = await ticks(t)
    disturb(feed, page)
    feed.ticks(HOUR)
    t.same(seconds(), [-1, 0, 1, HOUR])
    t.equal(feed.asksTime, 1)
    await new Promise((resolve) => void setTimeout(resolve, 2))
    await feed.answer({ time: feed.time })
    feed.ticks(2)
    t.same(seconds(), [-1, 0, 1, 2])
  })
}

await test('a history that is behind its stream is asked for five times, and as often when the stream begins again', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const feed = new PriceFeed()
  const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks', count: 10 })
  t.teardown(() => chart.stop())
  for (const second of [10, 20]) {
    const epoch = feed.time + second
    feed.begin({ tick: { epoch, quote: 1 } })
    for (let question = 1; question <= 5; question++) {
      await feed.answer({ history: { times: [epoch - 2], prices: [1] } })
      mock.timers.tick(150 * 2 ** 5)
    }
    t.same(feed.asked, [], 'upstream has no more')
    t.equal(chart.get().gap?.from, epoch - 2)
  }
  feed.begin({ tick: { epoch: feed.time + 30, quote: 1 } })
  await feed.answer({ history: { times: [feed.time + 28], prices: [1] } })
  feed.begin({ tick: { epoch: feed.time + 31, quote: 1 } })
  t.match(
    feed.asked,
    exactly({ message: { start: feed.time + 28 } }),
    'nothing is certain after a history that is behind',
  )
})

await test('equal prices of a second are as many as the stream has brought, though the history has them, too', async (t) => {
  const feed = new PriceFeed()
  const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks', count: 10 })
  t.teardown(() => chart.stop())
  feed.begin({ tick: { epoch: feed.time, quote: 1 } })
  feed.push({ tick: { epoch: feed.time, quote: 1 } })
  await feed.answer({ history: { times: [feed.time, feed.time], prices: [1, 1] } })
  t.equal(chart.get().points.length, 2)
})

await test('three points in a row that are ahead show that the clock is wrong: they pass, and it is measured again', async (t) => {
  const { feed, seconds } = await ticks(t)
  feed.ticks(HOUR, 2, HOUR + 1, HOUR + 2)
  t.same(seconds(), [-1, 0, 1, 2])
  t.equal(feed.asksTime, 0)
  feed.ticks(HOUR + 3)
  t.same(seconds(), [-1, 0, 1, 2, HOUR, HOUR + 1, HOUR + 2, HOUR + 3])
  t.equal(feed.asksTime, 1)
  // The trading service itself is ahead of the server.
  await feed.answer({ time: feed.time })
  feed.ticks(HOUR + 4)
  t.equal(seconds().at(-1), HOUR + 4)
  t.equal(feed.asksTime, 0)
})

await test('a chart that was opened while the market is closed asks again within five minutes, and a final refusal is final', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const feed = new PriceFeed()
  const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks', count: 10 })
  feed.refuse('MarketIsClosed')
  const { time } = feed
  await feed.answer({ history: { times: [time], prices: [1] } })
  t.match(chart.get(), { points: { length: 1 }, error: { code: 'MarketIsClosed' } })
  mock.timers.tick(59_000)
  t.equal(feed.subscriptions, 1)
  mock.timers.tick(241_000)
  t.equal(feed.subscriptions, 2)
  feed.refuse('MarketIsClosed')
  mock.timers.tick(300_000)
  t.equal(feed.subscriptions, 3, 'again and again')
  feed.begin({ tick: { epoch: time + 5, quote: 5 } })
  await feed.answer({ history: { times: [time, time + 5], prices: [1, 5] } })
  t.same(chart.get(), {
    points: [
      { epoch: time, quote: 1 },
      { epoch: time + 5, quote: 5 },
    ],
  })
  mock.timers.tick(600_000)
  t.equal(feed.subscriptions, 3)
  feed.refuse('MarketIsClosed')
  feed.ticks(6)
  feed.refuse('MarketIsClosed')
  mock.timers.tick(300_000)
  t.equal(feed.subscriptions, 4, 'another evening')
  feed.refuse('MarketIsClosed')
  chart.stop()
  mock.timers.tick(600_000)
  t.equal(feed.subscriptions, 4, 'not after stop()')
  const wrong = new PriceFeed()
  const none = series(wrong.socket, { symbol: 'R_0', style: 'ticks' })
  wrong.refuse('InvalidSymbol')
  mock.timers.tick(600_000)
  t.equal(wrong.subscriptions, 1)
  none.stop()
})
