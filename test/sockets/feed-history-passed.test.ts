import { test } from 'tap'
import { feedWorld, reply, type Message } from '../support/feed/world.ts'

const tick = (epoch: number, quote: number): Message => ({
  msg_type: 'tick',
  tick: { epoch, quote },
  subscription: { id: 't' },
})
const ticks = (...points: readonly (readonly [epoch: number, quote: number])[]): Message => ({
  msg_type: 'history',
  history: { times: points.map(([epoch]) => epoch), prices: points.map(([, quote]) => quote) },
})
const ohlc = (openTime: number, close: number): Message => ({
  msg_type: 'ohlc',
  ohlc: { open_time: openTime, open: '1', high: '9', low: '1', close: String(close) },
  subscription: { id: 'c' },
})
const candles = (epoch: number, close: number): Message => ({
  msg_type: 'candles',
  candles: [{ epoch, open: 1, high: 9, low: 1, close }],
})
const streamed = (messages: readonly Message[]): unknown[] =>
  messages.map(({ tick, ohlc }) => Number((tick as Message | undefined)?.['quote'] ?? (ohlc as Message)['close']))

interface Course {
  /** What the stream sends before the later history. */
  readonly sent?: readonly Message[]
  readonly later: Message
  /** Where it was asked to end. */
  readonly end?: unknown
  readonly rest: readonly Message[]
}

await test('a history whose last value the stream does not send is followed by all that may be later', async (t) => {
  const { market, join } = await feedWorld(t)
  /** A stream that begins with `begun`, and a browser that is given `later` after `sent`. @returns what follows for it */
  const follow = async (
    { ticks_history: symbol, ...first }: Message,
    begun: Message,
    { sent = [], later, end = 'latest', rest }: Course,
  ): Promise<unknown[]> => {
    const [one, two] = [await join(), await join()]
    one.send({ ticks_history: symbol, subscribe: 1, ...first })
    const request = await market.next('ticks_history', symbol)
    reply(request, { ...begun, subscription: { id: 's' } })
    t.match(await one.next(), begun)
    for (const message of sent) {
      reply(request, message)
      await one.next()
    }
    two.send({ ticks_history: symbol, subscribe: 1, ...first, end })
    reply(await market.next('ticks_history', symbol), later)
    t.match(await two.next(), later)
    for (const message of rest) {
      reply(request, message)
      await one.next()
    }
    return streamed(await two.rest())
  }
  const style = { style: 'candles' }

  await t.test('the last state of a candle, if the stream has begun without a history', async (t) => {
    const rest = [ohlc(60, 6), ohlc(60, 7), ohlc(120, 8)]
    const none = { msg_type: 'candles', candles: [] }
    t.same(await follow({ ticks_history: 'R_1', ...style, start: 1 }, none, { later: candles(60, 5), rest }), [7, 8])
  })

  await t.test('the last state of a candle, if the stream has left out that of the history', async (t) => {
    const rest = [ohlc(60, 6), ohlc(120, 8)]
    const course = { sent: [ohlc(60, 3)], later: candles(60, 5), rest }
    t.same(await follow({ ticks_history: 'R_2', ...style, count: 1 }, candles(60, 2), course), [6, 8])
  })

  await t.test('the ticks of a second, if the stream has begun without a history', async (t) => {
    const rest = [tick(100, 3), tick(100, 4), tick(101, 5)]
    const course = { later: ticks([99, 1], [100, 2]), rest }
    t.same(await follow({ ticks_history: 'R_3', start: 1 }, ticks(), course), [3, 4, 5])
  })

  await t.test('the ticks of a second, if the stream has begun with a history that ended long ago', async (t) => {
    const rest = [tick(100, 3), tick(100, 4), tick(101, 5)]
    const course = { later: ticks([99, 0], [100, 1], [100, 2]), rest }
    t.same(await follow({ ticks_history: 'R_4', end: 50 }, ticks([49, 1], [50, 2]), course), [3, 4, 5])
  })

  await t.test('the ticks of a second, however many they are', async (t) => {
    const many = Array.from({ length: 200 }, (_, index) => tick(100, 3 + index))
    const course = { later: ticks([99, 1], [100, 2]), rest: [...many, tick(101, 999)] }
    const followed = await follow({ ticks_history: 'R_5', start: 1 }, ticks(), course)
    t.same(followed, streamed(course.rest))
  })

  await t.test('a history that ends before all that the stream has is followed by all of that', async (t) => {
    const course = { sent: [tick(101, 3), tick(102, 4)], later: ticks([99, 1], [100, 2]), rest: [tick(103, 5)] }
    t.same(await follow({ ticks_history: 'R_6', start: 1 }, ticks(), course), [3, 4, 5])
  })

  await t.test('a history that was asked to end before all that is followed by what comes since then', async (t) => {
    const course = { sent: [tick(101, 3), tick(102, 4)], later: ticks([49, 1], [50, 2]), end: 50, rest: [tick(103, 5)] }
    t.same(await follow({ ticks_history: 'R_7', start: 1 }, ticks(), course), [5])
  })

  await t.test('the wider state of a candle, but none of its range that may be older', async (t) => {
    const wider = { msg_type: 'ohlc', subscription: { id: 'c' } }
    const rest = [ohlc(60, 6), { ...wider, ohlc: { open_time: 60, open: '1', high: '10', low: '1', close: '7' } }]
    const course = { sent: [ohlc(60, 3)], later: candles(60, 5), rest }
    t.same(await follow({ ticks_history: 'R_8', ...style, count: 1 }, candles(60, 2), course), [7])
  })
})
