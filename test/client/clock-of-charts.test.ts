import { test, type Test } from 'tap'
import { series } from '../../client/dist/client/series.js'
import { PriceFeed } from '../support/client/price-feed.ts'
import { replace } from '../support/time/replace.ts'

const HOUR = 3600

/** Promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A page with charts, one after the other, whose time passes when a test says so. */
function chartsOf(t: Test) {
  let passedMs = 0
  const now = performance.now.bind(performance)
  replace(t, performance, 'now', () => now() + passedMs)
  const feed = new PriceFeed()
  return {
    feed,
    pass: (ms: number) => void (passedMs += ms),
    /** Opens a chart, whose first prices arrive. @returns what ends it, and whether the clock is being asked for */
    open: () => {
      const chart = series(feed.socket, { symbol: 'R_100', style: 'ticks' })
      t.teardown(() => chart.stop())
      feed.begin({ tick: { epoch: feed.time, quote: 100 } })
      feed.ticks(1)
      return { stop: () => chart.stop(), isMeasuring: () => feed.asksTime > 0 }
    },
  }
}

await test('a series that begins a second after the last one has ended has the clock measured, since nobody listened to the page', async (t) => {
  const { feed, open, pass } = chartsOf(t)
  const first = open()
  t.notOk(first.isMeasuring())
  pass(HOUR * 1000)
  first.stop()
  pass(1001)
  const second = open()
  t.ok(second.isMeasuring())
  await feed.answer({ time: feed.time })
  pass(60_001)
  feed.ticks(2)
  t.notOk(second.isMeasuring(), 'it is known')
})

await test('a page that changes the symbol of its chart does not have the clock measured each time', async (t) => {
  const { feed, open, pass } = chartsOf(t)
  for (let symbol = 0; symbol < 5; symbol++) {
    const { stop, isMeasuring } = open()
    t.notOk(isMeasuring())
    pass(HOUR * 1000)
    stop()
    pass(500)
  }
  feed.knows = false
  const first = open()
  t.equal(feed.asksTime, 1)
  const other = open()
  first.stop()
  feed.ticks(2)
  t.equal(feed.asksTime, 1, 'once for all')
  other.stop()
})

await test('a chart that ends before the clock was measured leaves that to the next one, and a refusal to nobody for a minute', async (t) => {
  const { feed, open, pass } = chartsOf(t)
  feed.knows = false
  const first = open()
  const question = feed.asked.find(({ message }) => 'time' in message)
  first.stop()
  question?.refuse(new Error('aborted'))
  await settled()
  open()
  t.equal(feed.asksTime, 2)
  feed.asked.findLast(({ message }) => 'time' in message)?.refuse(new Error('refused'))
  await settled()
  feed.ticks(2)
  pass(59_000)
  feed.ticks(3)
  t.equal(feed.asksTime, 2)
  pass(1001)
  feed.ticks(4)
  t.equal(feed.asksTime, 3)
})
