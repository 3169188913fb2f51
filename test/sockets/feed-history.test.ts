import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { CacheQuota } from '../../src/sockets/feed/streams/shared-answer.ts'
import { feedWorld, type Message, quotes, reply, type UpstreamRequest } from '../support/feed/world.ts'

/** Longer than a history is kept. */
const HISTORY_MS = 1100

/** What is kept from now on is kept until the test ends, because the second of a history is too short for a slow machine. */
const keepAll = (t: Test): void => void t.intercept(CacheQuota.prototype, 'keep', { value: () => true })

const history = (request: UpstreamRequest, last: number, extra: Message = {}): void => {
  const times = Array.from({ length: 5 }, (_, index) => last - 4 + index)
  reply(request, { history: { prices: times, times }, msg_type: 'history', pip_size: 2, ...extra })
}
const tick = (request: UpstreamRequest, epoch: number): void =>
  reply(request, { msg_type: 'tick', tick: { epoch, quote: epoch }, subscription: { id: 'h' } })
const ohlc = (close: string): Message => ({
  ohlc: { open_time: 60, epoch: 61, open: '1', high: '3', low: '1', close },
  msg_type: 'ohlc',
  subscription: { id: 'c' },
})

await test('ticks_history with PUBLIC_FEED=shared', async (t) => {
  const { market, join } = await feedWorld(t)
  /** A living stream whose history ends with 100. */
  const living = async (symbol: string) => {
    const first = await join()
    first.send({ ticks_history: symbol, subscribe: 1, end: 'latest', count: 5, req_id: 1 })
    const request = await market.next('ticks_history', symbol)
    history(request, 100, { subscription: { id: 'h' } })
    t.match(await first.next(), { req_id: 1, history: { times: [96, 97, 98, 99, 100] }, subscription: { id: 'h' } })
    return { first, request }
  }

  await t.test('whoever comes later gets its own history, and then each later tick once', async (t) => {
    keepAll(t)
    const { first, request } = await living('R_1')
    tick(request, 101)
    const second = await join()
    second.send({ ticks_history: 'R_1', subscribe: 1, end: 'latest', start: 1, req_id: 2, passthrough: { a: 1 } })
    const fetch = await market.next('ticks_history', 'R_1')
    t.notOk('subscribe' in fetch.message || 'passthrough' in fetch.message)
    t.ok(fetch.socket !== request.socket, 'on the connection without streams')
    const third = await join()
    third.send({ start: 1, ticks_history: 'R_1', subscribe: 1, end: 'latest', req_id: 3 })
    await third.rest()
    tick(request, 102)
    tick(request, 103)
    t.same(quotes([await first.next(), await first.next(), await first.next()]), [101, 102, 103])
    history(fetch, 102)
    for (const [browser, id] of [
      [second, 2],
      [third, 3],
    ] as const) {
      t.match(await browser.next(), {
        req_id: id,
        history: { times: [98, 99, 100, 101, 102] },
        subscription: { id: 'h' },
        echo_req: { start: 1, subscribe: 1 },
      })
      t.match(await browser.next(), { req_id: id, tick: { quote: 103 }, subscription: { id: 'h' } })
    }
    // A fetched history serves those who ask the same in a moment, with all that has come since.
    const fourth = await join()
    tick(request, 104)
    await first.next()
    fourth.send({ start: 1, ticks_history: 'R_1', subscribe: 1, end: 'latest' })
    t.match(await fourth.next(), { history: { times: [98, 99, 100, 101, 102] } })
    t.same(quotes([await fourth.next(), await fourth.next()]), [103, 104])
    tick(request, 105)
    t.same(quotes(await fourth.rest()), [105])
    t.same(quotes(await second.rest()), [104, 105])
    t.equal(market.asked('ticks_history').filter(({ message }) => message['ticks_history'] === 'R_1').length, 2)
  })

  await t.test('a history that is kept is followed by all that has come since, however much', async (t) => {
    const { first, request } = await living('R_8')
    /** Five ticks of each second. */
    const fast = (quote: number): void =>
      reply(request, {
        msg_type: 'tick',
        tick: { epoch: 101 + Math.floor(quote / 5), quote },
        subscription: { id: 'h' },
      })
    for (const quote of [0, 1]) fast(quote)
    t.same(quotes([await first.next(), await first.next()]), [0, 1])
    // The first history is kept no more, so that nothing is needed for it.
    await delay(HISTORY_MS)
    keepAll(t)
    const second = await join()
    const wanted = { ticks_history: 'R_8', subscribe: 1, end: 'latest', count: 3 }
    second.send(wanted)
    const recent = { history: { prices: [100, 0, 1], times: [100, 101, 101] }, msg_type: 'history' }
    reply(await market.next('ticks_history', 'R_8'), recent)
    t.match(await second.next(), recent)
    const all = Array.from({ length: 100 }, (_, index) => 2 + index)
    for (const quote of all) {
      fast(quote)
      t.match(await second.next(), { tick: { quote } })
    }
    const third = await join()
    third.send({ ...wanted, req_id: 3 })
    t.match(await third.next(), { ...recent, req_id: 3 }, 'the same history')
    t.same(quotes(await third.rest()), all)
  })

  await t.test('a history that is ahead is kept too, and followed by what it does not contain', async (t) => {
    keepAll(t)
    const { request } = await living('R_9')
    const [second, third, gone] = [await join(), await join(), await join()]
    const wanted = { ticks_history: 'R_9', subscribe: 1, end: 'latest', count: 3 }
    second.send(wanted)
    const ahead = { history: { prices: [101, 102, 103], times: [101, 102, 103] }, msg_type: 'history' }
    reply(await market.next('ticks_history', 'R_9'), ahead)
    t.match(await second.next(), ahead)
    tick(request, 101)
    for (const late of [third, gone]) {
      late.send(wanted)
      t.match(await late.next(), ahead)
    }
    tick(request, 102)
    t.match(await gone.ask({ forget: 'h' }), { forget: 1 })
    for (const epoch of [103, 104]) tick(request, epoch)
    for (const browser of [second, third]) t.same(quotes([await browser.next()]), [104])
    const fourth = await join()
    fourth.send(wanted)
    t.match(await fourth.next(), ahead)
    t.same(quotes(await fourth.rest()), [104])
    t.same(await gone.rest(), [], 'who has forgotten the stream gets nothing')
  })

  await t.test('an equal request shares the first history; another waits for the stream', async (t) => {
    const [first, equal, other] = [await join(), await join(), await join()]
    const request = await market.askedBy(first, { ticks_history: 'R_3', subscribe: 1, end: 'latest', req_id: 1 })
    equal.send({ ticks_history: 'R_3', end: 'latest', subscribe: 1, req_id: 2 })
    other.send({ ticks_history: 'R_3', end: 'latest', subscribe: 1, style: 'ticks', count: 1, req_id: 3 })
    await Promise.all([equal.rest(), other.rest()])
    history(request, 100, { subscription: { id: 'h' } })
    t.match(await first.next(), { req_id: 1, history: {} })
    t.match(await equal.next(), { req_id: 2, history: {}, echo_req: { req_id: 2 }, subscription: { id: 'h' } })
    const fetch = await market.next('ticks_history', 'R_3')
    t.match(fetch.message, { count: 1, style: 'ticks' })
    tick(request, 101)
    reply(fetch, { history: { prices: [101], times: [101] }, msg_type: 'history' })
    t.match(await other.next(), { req_id: 3, history: { times: [101] } })
    tick(request, 102)
    t.same(quotes(await other.rest()), [102])
    t.same(quotes(await equal.rest()), [101, 102])
    const again = await other.ask({ ticks_history: 'R_3', end: 'latest', subscribe: 1, count: 7, req_id: 4 })
    t.match(again, { req_id: 4, error: { code: 'AlreadySubscribed' } }, 'the same stream, whatever the history')
  })

  await t.test('if the first request is refused, the next different one starts the stream', async (t) => {
    const [first, equal, other] = [await join(), await join(), await join()]
    const request = await market.askedBy(first, { ticks_history: 'R_4', subscribe: 1, end: 'never', req_id: 1 })
    other.send({ ticks_history: 'R_4', end: 'latest', subscribe: 1, req_id: 3 })
    equal.send({ ticks_history: 'R_4', end: 'never', subscribe: 1, req_id: 2 })
    await Promise.all([equal.rest(), other.rest()])
    reply(request, { msg_type: 'ticks_history', error: { code: 'InputValidationFailed', message: '' } })
    t.match(await first.next(), { req_id: 1, error: {} })
    t.match(await equal.next(), { req_id: 2, error: {} })
    const second = await market.next('ticks_history', 'R_4')
    t.match(second.message, { end: 'latest', subscribe: 1 })
    history(second, 100, { subscription: { id: 'h' } })
    t.match(await other.next(), { req_id: 3, history: {} })
  })

  await t.test('an error for one history concerns only those who asked for it', async (t) => {
    const { first, request } = await living('R_5')
    const second = await join()
    second.send({ ticks_history: 'R_5', subscribe: 1, end: 'never', req_id: 2 })
    reply(await market.next('ticks_history', 'R_5'), { error: { code: 'InputValidationFailed', message: '' } })
    t.match(await second.next(), { req_id: 2, error: {} })
    tick(request, 101)
    t.same(quotes(await first.rest()), [101])
    t.same(await second.rest(), [])
    second.send({ ticks_history: 'R_5', subscribe: 1, end: 'latest', req_id: 3 })
    history(await market.next('ticks_history', 'R_5'), 101)
    t.match(await second.next(), { req_id: 3, history: {} }, 'it may ask again')
    reply(request, { msg_type: 'tick', error: { code: 'MarketIsClosed', message: '' } })
    t.match(await first.next(), { req_id: 1, error: { code: 'MarketIsClosed' } })
    t.match(await second.next(), { req_id: 3, error: { code: 'MarketIsClosed' } })
  })

  await t.test('a browser that leaves between request and history leaves nothing behind', async (t) => {
    const { request } = await living('R_6')
    const [gone, stays] = [await join(), await join()]
    const fetch = await market.askedBy(gone, { ticks_history: 'R_6', subscribe: 1, end: 'latest', req_id: 2 })
    stays.send({ ticks_history: 'R_6', subscribe: 1, end: 'latest', req_id: 3 })
    await stays.rest()
    gone.client.socket.terminate()
    await gone.client.closed
    history(fetch, 100)
    t.match(await stays.next(), { req_id: 3, history: {} })
    tick(request, 101)
    t.same(quotes(await stays.rest()), [101])
  })

  await t.test('candles of different granularities are different streams', async (t) => {
    const [first, second] = [await join(), await join()]
    const candles = { candles: [{ epoch: 60, open: 1, high: 1, low: 1, close: 1 }], msg_type: 'candles' }
    const minute = await market.serve(
      first,
      { ticks_history: 'R_7', style: 'candles', granularity: 60, subscribe: 1, req_id: 1 },
      { ...candles, subscription: { id: 'c' } },
    )
    second.send({ ticks_history: 'R_7', style: 'candles', subscribe: 1, req_id: 2, count: 1 })
    const fetch = await market.next('ticks_history', 'R_7')
    t.notOk('subscribe' in fetch.message, 'a minute is the default')
    reply(minute, ohlc('2'))
    reply(fetch, candles)
    t.match(await second.next(), { req_id: 2, candles: [{ epoch: 60 }], subscription: { id: 'c' } })
    t.match(await second.next(), { req_id: 2, ohlc: { close: '2' } })
    second.send({ ticks_history: 'R_7', style: 'candles', granularity: 120, subscribe: 1, req_id: 3 })
    const two = await market.next('ticks_history', 'R_7')
    t.match(two.message, { granularity: 120, subscribe: 1 })
    await first.rest()
    t.same((await first.ask({ forget_all: 'ticks' }))['forget_all'], [])
    t.same((await first.ask({ forget_all: 'candles' }))['forget_all'], ['c'])
  })
})
