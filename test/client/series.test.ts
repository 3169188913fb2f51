import assert from 'node:assert/strict'
import { mock } from 'node:test'
import * as fc from 'fast-check'
import { createFakeClient } from '../../client/dist/testing.js'
import { test } from 'tap'
import { series, type CandlePoint, type Point, type Series } from '../../client/dist/client/series.js'
import { bridge, joinPrices } from '../../client/src/series/kinds.ts'
import { candlesOf, LosingSocket, settled, type Step } from '../support/client/losing-socket.ts'
import { exactly } from '../support/exactly.ts'

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ does: 'tick' } as const) },
  { weight: 3, arbitrary: fc.constant({ does: 'reply' } as const) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('lose' as const), misses: fc.integer({ min: 0, max: 6 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom('refuse' as const, 'accept'),
      misses: fc.integer({ min: 0, max: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('lag' as const), by: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('wait' as const), ms: fc.integer({ min: 100, max: 900 }) }) },
)

/** Prices that follow each other: several in a second, or none for some. */
const anyMarket = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 1, max: 9 })), { minLength: 4, maxLength: 60 })
  .map((steps) => {
    let epoch = 100
    return steps.map(([seconds, quote]): Point => ({ epoch: (epoch += seconds), quote }))
  })
/** The same without a price that a second has twice, so that each can be told apart. */
const market = anyMarket.map((all) =>
  all.filter(({ epoch, quote }, at) => all.findIndex((point) => point.epoch === epoch && point.quote === quote) === at),
)

await test('a history and a stream that has begun before it make every price once', (t) => {
  fc.assert(
    fc.property(market, fc.nat(), fc.nat(), fc.nat(), (all, a, b, c) => {
      const from = a % all.length
      const start = all.findIndex(({ epoch }) => epoch === all[from]?.epoch)
      const begins = from + (b % (all.length - from))
      const until = begins + 1 + (c % (all.length - begins))
      for (let now = begins + 1; now <= all.length; now++) {
        const joined = joinPrices(all.slice(start, until), all.slice(begins, now), Math.min(now, until) - begins)
        assert.deepStrictEqual(joined.points, all.slice(start, Math.max(until, now)))
        assert.equal(joined.isBehind, false)
        // From then on, each message of the stream is appended as it comes.
        if (joined.isSettled) assert.ok(now >= until)
      }
    }),
  )
  t.end()
})

await test('equal prices of a second make no other one out of a history that has all that the stream had brought', (t) => {
  fc.assert(
    fc.property(anyMarket, fc.nat(), fc.nat(), (all, a, b) => {
      const begins = a % all.length
      const start = all.findIndex(({ epoch }) => epoch === all[begins]?.epoch)
      const until = begins + 1 + (b % (all.length - begins))
      for (let now = until; now <= all.length; now++) {
        const joined = joinPrices(all.slice(start, until), all.slice(begins, now), until - begins)
        assert.deepStrictEqual(joined.points, all.slice(start, now))
      }
    }),
    { numRuns: 1000 },
  )
  t.end()
})

const point = (epoch: number, quote: number): Point => ({ epoch, quote })

await test('a history that ends before the stream begins is behind it, and so is one without the first price of the stream', (t) => {
  const history = [point(1, 5), point(2, 6)]
  t.match(joinPrices(history, [point(4, 1)], 1), { isBehind: true, gap: { from: 2, to: 4 } })
  t.match(joinPrices(history, [point(2, 7)], 1), { isBehind: true, points: [...history, point(2, 7)] })
  t.match(joinPrices(history, [point(2, 6), point(2, 7)], 1), { isBehind: false, points: [...history, point(2, 7)] })
  const before = [point(0, 1), point(1, 4)]
  t.same(bridge(before, history, false), { points: [point(0, 1), ...history], gap: undefined })
  t.match(bridge([point(0, 1)], history, false), { points: [point(0, 1), ...history], gap: { from: 0, to: 1 } })
  t.match(bridge(before, history, true), { points: history })
  t.end()
})

const RUNS = Number(process.env['RUNS'] ?? 400)

for (const style of ['ticks', 'candles'] as const) {
  await test(`a series of ${style} is what upstream has, each point once and in order, whatever the losses`, async (t) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    t.teardown(() => mock.timers.reset())
    let losses = 0
    const history = async (all: readonly Point[], steps: readonly Step[], count: number): Promise<void> => {
      const seconds = style === 'candles' ? 5 : 0
      const upstream = new LosingSocket(all, seconds)
      const chart: Series<Point | CandlePoint> = series(upstream.socket, { symbol: 'R_1', style, count })
      for (const next of steps) {
        if (next.does === 'lose') losses++
        await upstream.take(next)
        isOrdered(chart.get().points)
      }
      // Upstream catches up, and answers everything.
      upstream.lag = 0
      if (upstream.refusal) await upstream.take({ does: 'accept', misses: 0 })
      for (let rest = 0; rest < 12; rest++) {
        upstream.reply()
        await settled()
        mock.timers.tick(3000)
      }
      chart.stop()
      const prices = all.slice(0, upstream.now)
      const expected = style === 'candles' ? candlesOf(prices, seconds) : prices
      assert.deepStrictEqual(chart.get(), { points: expected.slice(-count) })
    }
    const property = fc.asyncProperty(
      market,
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 40 }),
      history,
    )
    await fc.assert(property, { numRuns: RUNS })
    t.ok(losses > RUNS / 8, `${losses} losses`)
  })
}

await test('after a reconnect a series asks for what came after its last point, and says where upstream has it no more', async (t) => {
  const all = Array.from({ length: 30 }, (_, index) => ({ epoch: 100 + index, quote: index }))
  const upstream = new LosingSocket(all)
  const chart = series(upstream.socket, { symbol: 'R_1', style: 'ticks', count: 25 })
  const once = async (...steps: readonly Step[]): Promise<void> => {
    for (const next of steps) await upstream.take(next)
  }
  const tick = { does: 'tick' } as const
  const reply = { does: 'reply' } as const
  await once(reply, ...Array.from({ length: 9 }, () => tick), { does: 'lose', misses: 5 }, reply)
  t.match(upstream.requests, exactly({ start: undefined, count: 25 }, { start: 109, end: 'latest' }))
  t.same(chart.get(), { points: all.slice(0, 15) })
  upstream.oldest = 20
  await once({ does: 'lose', misses: 8 }, reply, tick)
  t.same(chart.get(), { points: [...all.slice(0, 15), ...all.slice(20, 24)], gap: { from: 114, to: 120 } })
  let calls = 0
  chart.subscribe(() => calls++)
  const shown = chart.get()
  t.equal(chart.get(), shown, 'the same object until something changes')
  await once(...Array.from({ length: 6 }, () => tick))
  t.equal(calls, 6)
  t.same(chart.get(), { points: [...all.slice(0, 15), ...all.slice(20)], gap: { from: 114, to: 120 } })
  chart.stop()
})

await test('a history that is lost alone, on a connection that the stream does not share, is asked for again', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const all = [point(100, 1), point(101, 2), point(102, 3)]
  const upstream = new LosingSocket(all)
  const chart = series(upstream.socket, { symbol: 'R_1', style: 'ticks', count: 10 })
  upstream.loseRequests()
  await settled()
  mock.timers.tick(2000)
  for (const does of ['reply', 'tick', 'tick'] as const) await upstream.take({ does })
  t.same(chart.get(), { points: all })
  chart.stop()
})

await test('the history of a closed market is shown beside the refusal, and goes on when the market opens', async (t) => {
  for (const seconds of [0, 2]) {
    const all = Array.from({ length: 12 }, (_, index) => point(100 + index, index))
    const upstream = new LosingSocket(all, seconds)
    Object.assign(upstream, { now: 5, refusal: { code: 'MarketIsClosed' } })
    const style = seconds > 0 ? 'candles' : 'ticks'
    const chart = series(upstream.socket, { symbol: 'R_1', style, count: 10 })
    upstream.begin()
    t.equal(upstream.requests.length, 1, 'a second refusal asks for nothing more')
    await upstream.take({ does: 'reply' })
    const shown = (count: number) => (seconds > 0 ? candlesOf(all.slice(0, count), seconds) : all.slice(0, count))
    t.same(chart.get(), { points: shown(5), error: { code: 'MarketIsClosed' } })
    await upstream.take({ does: 'lose', misses: 1 })
    t.equal(upstream.requests.length, 1, 'a history that is there is not asked for again')
    upstream.refusal = undefined
    await upstream.take({ does: 'lose', misses: 2 })
    await upstream.take({ does: 'reply' })
    t.same(chart.get(), { points: shown(8) })
    t.equal(upstream.requests[1]?.['start'], 104)
    chart.stop()
  }
  const upstream = new LosingSocket([point(1, 1)])
  upstream.refusal = { code: 'InvalidSymbol' }
  t.match(series(upstream.socket, { symbol: 'R_0', style: 'ticks' }).get(), { error: { code: 'InvalidSymbol' } })
  t.same(upstream.requests, [], 'nothing is asked about a symbol that does not exist')
})

function isOrdered(points: readonly { readonly epoch: number }[]): void {
  for (const [index, { epoch }] of points.entries()) {
    const previous = points[index - 1]
    if (previous && previous.epoch > epoch) throw new Error(`out of order: ${JSON.stringify(points)}`)
  }
}

await test('charts that end with their socket leave nothing behind in the page', async (t) => {
  const page = new EventTarget()
  let listening = 0
  const addEventListener: EventTarget['addEventListener'] = (name, listener, options) => {
    listening++
    Object(options).signal?.addEventListener('abort', () => listening--)
    page.addEventListener(name, listener, options)
  }
  Object.assign(globalThis, { addEventListener })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'addEventListener'))
  const client = createFakeClient()
  t.teardown(() => client.close())
  client.publicSocket()
  const counts: number[] = []
  for (let charts = 0; charts < 3; charts++) {
    const socket = client.publicSocket()
    series(socket, { symbol: 'R_100', style: 'ticks' })
    counts.push(listening)
    socket.close()
  }
  const [first] = counts
  t.same(counts, [first, first, first])
})
