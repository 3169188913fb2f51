import assert from 'node:assert/strict'
import { mock } from 'node:test'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { Message, PublicSocket, SocketError } from '../../client/dist/client.js'
import { series, type CandlePoint, type Point, type Series } from '../../client/dist/client/series.js'
import { bridge, joinPrices } from '../../client/src/series/series-join.ts'

/** What happens to a series. */
type Step =
  | { readonly does: 'tick' | 'reply' }
  | { readonly does: 'lose'; readonly misses: number }
  | { readonly does: 'lag'; readonly by: number }
  | { readonly does: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ does: 'tick' } as const) },
  { weight: 3, arbitrary: fc.constant({ does: 'reply' } as const) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('lose' as const), misses: fc.integer({ min: 0, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('lag' as const), by: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('wait' as const), ms: fc.integer({ min: 100, max: 900 }) }) },
)

/** Prices that follow each other: several in a second, or none for some. No second has a price twice, so each can be told apart. */
const market = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 1, max: 9 })), { minLength: 4, maxLength: 60 })
  .map((steps) => {
    let epoch = 100
    const points: Point[] = []
    for (const [seconds, quote] of steps) {
      epoch += seconds
      if (!points.some((point) => point.epoch === epoch && point.quote === quote)) points.push({ epoch, quote })
    }
    return points
  })

await test('a history and a stream that has begun before it make every price once', (t) => {
  fc.assert(
    fc.property(market, fc.nat(), fc.nat(), fc.nat(), (all, a, b, c) => {
      const from = a % all.length
      const start = all.findIndex(({ epoch }) => epoch === all[from]?.epoch)
      const begins = from + (b % (all.length - from))
      const until = begins + 1 + (c % (all.length - begins))
      for (let now = begins + 1; now <= all.length; now++) {
        const joined = joinPrices(all.slice(start, until), all.slice(begins, now))
        assert.deepStrictEqual(joined.points, all.slice(start, Math.max(until, now)))
        assert.equal(joined.isBehind, false)
        // From then on, each message of the stream is appended as it comes.
        if (joined.isSettled) assert.ok(now >= until)
      }
    }),
  )
  t.end()
})

const point = (epoch: number, quote: number): Point => ({ epoch, quote })

await test('a history that ends before the stream begins is behind it, and so is one without the first price of the stream', (t) => {
  const history = [point(1, 5), point(2, 6)]
  t.match(joinPrices(history, [point(4, 1)]), { isBehind: true, gap: { from: 2, to: 4 } })
  t.match(joinPrices(history, [point(2, 7)]), { isBehind: true, points: [...history, point(2, 7)] })
  t.match(joinPrices(history, [point(2, 6), point(2, 7)]), { isBehind: false, points: [...history, point(2, 7)] })
  const before = [point(0, 1), point(1, 4)]
  t.same(bridge(before, history, false), { points: [point(0, 1), ...history], gap: undefined })
  t.match(bridge([point(0, 1)], history, false), { points: [point(0, 1), ...history], gap: { from: 0, to: 1 } })
  t.match(bridge(before, history, true), { points: history })
  t.end()
})

/** The candles of so many seconds that these prices make. */
function candlesOf(prices: readonly Point[], seconds: number): CandlePoint[] {
  return [...Map.groupBy(prices, ({ epoch }) => epoch - (epoch % seconds))].map(([epoch, inPeriod]) => {
    const quotes = inPeriod.map(({ quote }) => quote)
    return {
      epoch,
      open: quotes[0] ?? 0,
      high: Math.max(...quotes),
      low: Math.min(...quotes),
      close: quotes.at(-1) ?? 0,
    }
  })
}

/** A public socket of a market whose connection is lost at any moment. */
class LosingSocket {
  readonly requests: Message[] = []
  /** How many prices there have been. */
  now = 1
  /** How far the histories are behind the stream, in prices. */
  lag = 0
  /** The oldest price that upstream still has. */
  oldest = 0
  readonly #all: readonly Point[]
  readonly #isCandles: boolean
  readonly #seconds: number
  #id = 0
  #listener: ((message: Message) => void) | undefined
  #pending: { readonly reply: () => void; readonly lose: () => void }[] = []

  /** @param seconds the length of a candle; 0 for prices */
  constructor(all: readonly Point[], seconds = 0) {
    this.#all = all
    this.#isCandles = seconds > 0
    this.#seconds = Math.max(seconds, 1)
  }

  get socket(): PublicSocket {
    const partial = {
      subscribe: (_message: object, listener: (message: never) => void) => {
        this.#listener = listener as (message: Message) => void
        this.begin()
        return () => (this.#listener = undefined)
      },
      request: (message: Message) =>
        new Promise<Message>((resolve, reject) => {
          this.requests.push(message)
          const { start = 0, count } = message as { start?: number; count: number }
          const has = this.#all.slice(this.oldest, Math.max(this.now - this.lag, 1))
          const points = has.filter(({ epoch }) => epoch >= start).slice(-count)
          const history = { times: points.map(({ epoch }) => epoch), prices: points.map(({ quote }) => quote) }
          const candles = candlesOf(has, this.#seconds).filter(({ epoch }) => epoch >= start)
          this.#pending.push({
            reply: () => resolve(this.#isCandles ? { candles: candles.slice(-count) } : { history }),
            lose: () => reject(Object.assign(new Error('lost'), { code: 'connection_lost' } as Partial<SocketError>)),
          })
        }),
    }
    return partial as unknown as PublicSocket
  }

  /** The stream begins, with the newest price. */
  begin(): void {
    this.#id++
    if (this.#isCandles) this.#listener?.({ req_id: this.#id, candles: this.#candles().slice(-2) })
    else this.#send()
  }

  async take(step: Step): Promise<void> {
    switch (step.does) {
      case 'tick':
        if (this.#next()) this.#send()
        break
      case 'reply':
        this.reply()
        break
      case 'lag':
        this.lag = step.by
        break
      case 'wait':
        mock.timers.tick(step.ms)
        break
      case 'lose':
        this.loseRequests()
        await settled()
        for (let missed = 0; missed < step.misses; missed++) this.#next()
        this.begin()
    }
    await settled()
  }

  loseRequests(): void {
    for (const { lose } of this.#pending.splice(0)) lose()
  }

  /** Answers the oldest request. */
  reply(): void {
    this.#pending.shift()?.reply()
  }

  /** @returns false if there are no more prices */
  #next(): boolean {
    if (this.now >= this.#all.length) return false
    this.now++
    return true
  }

  #send(): void {
    const { epoch, ...last } = this.#candles().at(-1) ?? { epoch: 0 }
    const point = this.#isCandles ? { ohlc: { ...last, open_time: epoch } } : { tick: this.#all[this.now - 1] }
    this.#listener?.({ req_id: this.#id, ...point })
  }

  #candles(): CandlePoint[] {
    return candlesOf(this.#all.slice(0, this.now), this.#seconds)
  }
}

const RUNS = Number(process.env['RUNS'] ?? 400)

/** Lets promises settle. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await Promise.resolve()
}

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
  t.match(upstream.requests, [
    { start: undefined, count: 25 },
    { start: 109, end: 'latest' },
  ])
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

function isOrdered(points: readonly { readonly epoch: number }[]): void {
  for (const [index, { epoch }] of points.entries()) {
    const previous = points[index - 1]
    if (previous && previous.epoch > epoch) throw new Error(`out of order: ${JSON.stringify(points)}`)
  }
}
