import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { SocketError } from '../../client/dist/client.js'
import { series } from '../../client/dist/client/series.js'
import { PriceFeed } from '../support/client/price-feed.ts'
import { exactly } from '../support/exactly.ts'

/** A chart of ticks on timers that a test plays. */
function drawn(t: Test) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const feed = new PriceFeed()
  const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks', count: 10 })
  t.teardown(() => chart.stop())
  return { feed, chart }
}

await test('a chart whose stream is refused after a reconnect, as the market has closed, asks once for what it has missed', async (t) => {
  const { feed, chart } = drawn(t)
  for (const evening of [1, 2]) {
    const { time } = feed
    const seconds = (): number[] => chart.get().points.map(({ epoch }) => epoch - time)
    feed.begin({ tick: { epoch: time, quote: 100 } })
    await feed.answer({ history: { times: [time - 1, time], prices: [99, 100] } })
    feed.ticks(1)
    feed.time += 3600
    feed.refuse('MarketIsClosed')
    t.match(feed.asked, exactly({ message: { start: time + 1, end: 'latest' } }), `evening ${evening}`)
    await feed.answer({ history: { times: [time + 1, time + 1800], prices: [101, 7] } })
    t.same(seconds().slice(-4), [-1, 0, 1, 1800])
    t.match(chart.get(), { error: { code: 'MarketIsClosed' } })
    mock.timers.tick(300_000)
    feed.refuse('MarketIsClosed')
    t.same(feed.asked, [], 'a second refusal asks for nothing more')
    feed.time += 3600
  }
})

await test('a chart says why its history is refused, until it has one', async (t) => {
  const { feed, chart } = drawn(t)
  feed.begin({ tick: { epoch: feed.time, quote: 1 } })
  const refused = async (error: SocketError): Promise<void> => {
    feed.asked.shift()?.refuse(error)
    for (let turns = 0; turns < 8; turns++) await Promise.resolve()
  }
  await refused(new SocketError('connection_lost', ''))
  t.same(chart.get(), { points: [] }, 'a lost connection is no refusal')
  mock.timers.tick(40_000)
  const refusal = new SocketError('PermissionDenied', 'not yours', { reply: {} })
  await refused(refusal)
  t.same(chart.get(), { points: [], error: refusal })
  mock.timers.tick(40_000)
  await feed.answer({ history: { times: [feed.time], prices: [1] } })
  t.same(chart.get(), { points: [{ epoch: feed.time, quote: 1 }] })
})
