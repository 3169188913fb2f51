import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { Audience } from '../../src/sockets/feed/streams/audience.ts'
import type { Subscriber } from '../../src/sockets/feed/streams/subscription.ts'
import { feedWorld, price, quotes, reply, tick } from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** Longer than a stream without browsers is kept. */
const LINGERED_MS = 1200
/** How long a browser's next requests wait for a forget_all. */
const HOLD_MS = 10_000

await test('a browser that leaves before the answer to its forget_all leaves no subscription behind', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const browser = await join()
  browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
  browser.send({ forget_all: 'ticks', req_id: 2 })
  const request = await market.next('ticks')
  const taken = async (): Promise<unknown> => (await metric('bff_relay_operations_total')).get('operation="forget_all"')
  await until(async () => (await taken()) === 1, 'the server has the forget_all')
  const subscribers = async (): Promise<number | undefined> => (await metric('bff_feed_subscribers')).get('')
  t.equal(await subscribers(), 1)
  browser.client.socket.terminate()
  await until(async () => (await subscribers()) === 0, 'nobody has the stream')
  const other = await join()
  other.send({ ticks: 'R_1', subscribe: 1, req_id: 3 })
  t.same(await other.rest(), [])
  tick(request, 1, 1, 'id-1')
  t.match(await other.next(), { req_id: 3, tick: { quote: 1 } })
  t.match(await other.ask({ forget: 'id-1' }), { forget: 1 })
  t.ok(await market.next('forget', 'id-1'), 'the stream ends with its last browser')
})

await test('forget_all ends the stream of a second request whose turn comes when the first is refused', async (t) => {
  const { market, join } = await feedWorld(t)
  const error = { code: 'InternalServerError', message: '' }
  for (const hasOwn of [false, true]) {
    const browser = await join()
    if (hasOwn) {
      browser.send('{"proposal":1}')
      await market.next('proposal')
    }
    const symbol = hasOwn ? 'R_2' : 'R_1'
    for (const id of [1, 2, 3]) browser.send({ ticks: symbol, subscribe: 1, req_id: id })
    browser.send({ forget_all: 'ticks', req_id: 4 })
    browser.send({ ping: 1, req_id: 5 })
    const forget = hasOwn ? await market.next('forget_all') : undefined
    reply(await market.next('ticks', symbol), { msg_type: 'tick', error })
    t.match(await browser.next(), { req_id: 1, error })
    reply(await market.next('ticks', symbol), { msg_type: 'tick', error })
    t.match(await browser.next(), { req_id: 2, error })
    const third = await market.next('ticks', symbol)
    if (forget !== undefined) reply(forget, { msg_type: 'forget_all', forget_all: ['of-own'] })
    tick(third, 1, 1, 'id-3', symbol)
    t.match(await browser.next(), { req_id: 3, tick: { quote: 1 } })
    t.same((await browser.next())['forget_all'], hasOwn ? ['id-3', 'of-own'] : ['id-3'])
    if (hasOwn) reply(await market.next('ping'), { msg_type: 'ping', ping: 'pong' })
    t.match(await browser.next(), { req_id: 5, ping: 'pong' })
    const other = await join()
    t.match(await other.ask({ ticks: symbol, subscribe: 1 }), { tick: { quote: 1 } }, 'the stream lingers')
    tick(third, 2, 2, 'id-3', symbol)
    t.match(await other.next(), { tick: { quote: 2 } })
    t.equal(browser.client.received.length, 5)
  }
})

const times = (last: number) => ({
  history: { prices: [last - 1, last], times: [last - 1, last] },
  msg_type: 'history',
})
const asked = (reqId: number, end = 'latest') => ({ ticks_history: 'R_1', subscribe: 1, end, req_id: reqId })
const refusal = { msg_type: 'ticks_history', error: { code: 'InputValidationFailed', message: '' } }

await test('forget_all after a history that is refused', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_LINGER_SECONDS: '1' })

  await t.test('it takes nothing from another browser whose request goes upstream next', async (t) => {
    const [browser, other] = [await join(), await join()]
    browser.send(asked(1, 'never'))
    browser.send({ forget_all: ['ticks', 'candles'], req_id: 2 })
    const request = await market.next('ticks_history')
    other.send(asked(3))
    await other.rest()
    reply(request, refusal)
    t.match(await browser.next(), { req_id: 1, error: refusal.error })
    t.same((await browser.next())['forget_all'], [])
    const second = await market.next('ticks_history')
    reply(second, { ...times(10), subscription: { id: 'h' } })
    t.match(await other.next(), { req_id: 3, history: {} })

    // The stream lives, so the id of it is known when the next history is refused.
    browser.send(asked(4, 'never'))
    browser.send({ forget_all: 'ticks', req_id: 5 })
    reply(await market.next('ticks_history'), refusal)
    t.match(await browser.next(), { req_id: 4, error: refusal.error })
    t.same((await browser.next())['forget_all'], [], 'it has no stream')
    await delay(LINGERED_MS)
    tick(second, 11, 11, 'h')
    t.match(await other.next(), { req_id: 3, tick: { quote: 11 } }, 'the stream is still used')

    // Once its last browser has gone, a history that is refused does not keep it.
    await other.ask({ forget: 'h' })
    browser.send(asked(6, 'never'))
    reply(await market.next('ticks_history'), refusal)
    t.match(await browser.next(), { req_id: 6, error: refusal.error })
    t.ok(await market.next('forget', 'h'), 'the stream is over')
  })

  await t.test('a request of a browser that has left is not sent in its place', async (t) => {
    const [browser, gone] = [await join(), await join()]
    const request = await market.askedBy(browser, { ...asked(1, 'never'), ticks_history: 'R_2' })
    gone.send({ ...asked(2), ticks_history: 'R_2', count: 7 })
    await gone.rest()
    gone.client.socket.close()
    await gone.client.closed
    reply(request, refusal)
    t.match(await browser.next(), { req_id: 1, error: refusal.error })
    browser.send({ ...asked(3), ticks_history: 'R_2' })
    t.notOk('count' in (await market.next('ticks_history')).message)
  })
})

await test('a forget_all with a member that is unknown here or of an unknown type is answered by upstream', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '4' })
  const browser = await join()
  const request = await market.serve(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(1, 'id-1'))
  browser.send({ forget_all: 'ticks', why: 1, req_id: 2 })
  const error = { code: 'InputValidationFailed', message: 'Properties not allowed: why.' }
  reply(await market.next('forget_all'), { msg_type: 'forget_all', error })
  t.match(await browser.next(), { req_id: 2, error })
  tick(request, 2, 2, 'id-1')
  t.match(await browser.next(), { req_id: 1, tick: { quote: 2 } }, 'nothing was forgotten')
  reply(await market.askedBy(browser, { forget_all: 'balloons', req_id: 3 }), { msg_type: 'forget_all' })
  t.match(await browser.next(), { req_id: 3, forget_all: { length: 0 } }, 'an answer without a list')
  reply(await market.askedBy(browser, { forget_all: 'ticks' }), { msg_type: 'forget_all', forget_all: [] })
  t.same((await browser.next())['forget_all'], ['id-1'])
})

await test('a browser that waits for its history cannot forget the stream by the id that others know', async (t) => {
  const { market, join } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const stream = await market.serve(first, asked(1), { ...times(10), subscription: { id: 'h' } })
  second.send({ ...asked(2), count: 2 })
  const fetch = await market.next('ticks_history')
  t.match(await second.ask({ forget: 'h', req_id: 3 }), { req_id: 3, forget: 0 })
  reply(fetch, times(10))
  t.match(await second.next(), { req_id: 2, history: {}, subscription: { id: 'h' } })
  tick(stream, 11, 11, 'h')
  t.match(await second.next(), { req_id: 2, tick: { quote: 11 } })
})

await test('a browser that subscribes and forgets again and again leaves nothing behind while it stays', async (t) => {
  // oxlint-disable-next-line typescript/unbound-method -- it is called as ever; the test only sees with what
  const adds = t.capture(Audience.prototype, 'add', Audience.prototype.add)
  const { market, join } = await feedWorld(t)
  const browser = await join()
  await market.serve(browser, { ticks: 'R_1', subscribe: 1 }, price(1, 'id-1'))
  let subscriber: Subscriber | undefined
  for (let count = 1; count <= 3; count++) {
    const [subscription] = adds().flatMap(({ args }) => args[0])
    subscriber = subscription?.subscriber
    t.same((await browser.ask({ forget_all: 'ticks' }))['forget_all'], ['id-1'])
    t.equal(subscription?.isAttached, false)
    t.match(await browser.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 1 } })
  }
  t.equal(subscriber?.subscriptions.size, 1)
})

await test('forget_all names a stream once that has taken the place of two that were refused', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send('{"proposal":1}')
  await market.next('proposal')
  for (const [index, ticks] of ['R_1', 'R_2', ['R_1', 'R_2']].entries()) {
    browser.send({ ticks, subscribe: 1, req_id: index + 1 })
  }
  const forget = await market.askedBy(browser, { forget_all: 'ticks', req_id: 4 })
  const error = { code: 'InternalServerError', message: '' }
  for (const symbol of ['R_1', 'R_2']) reply(await market.next('ticks', symbol), { msg_type: 'tick', error })
  t.same(
    (await Promise.all([browser.next(), browser.next()])).map(({ req_id }) => req_id),
    [1, 2],
  )
  const requests = [await market.next('ticks', 'R_1'), await market.next('ticks', 'R_2')]
  reply(forget, { msg_type: 'forget_all', forget_all: [] })
  for (const request of requests) {
    const symbol = String(request.message['ticks'])
    tick(request, 1, 1, `id-${symbol}`, symbol)
  }
  t.same(quotes([await browser.next(), await browser.next()]), [1, 1])
  t.same((await browser.next())['forget_all'], ['id-R_1', 'id-R_2'])
})

await test('forget_all of a browser that is about to be closed after a loss names no stream, and is answered at once', async (t) => {
  t.intercept(Math, 'random', { value: () => 0.5 })
  const { market, join } = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '600' })
  const browser = await join()
  for (const [reqId, symbol] of ['R_1', 'R_2'].entries()) browser.send({ ticks: symbol, subscribe: 1, req_id: reqId })
  const request = await market.next('ticks', 'R_1')
  tick(request, 1, 1, 'id-1', 'R_1')
  await browser.next()
  await market.next('ticks', 'R_2')
  request.socket.terminate()
  tick(await market.next('ticks', 'R_1'), 2, 2, 'other-id', 'R_1')
  const other = await join()
  t.match(await other.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 2 } }, 'the stream is back, for others')
  t.same((await browser.ask({ forget_all: 'ticks' }))['forget_all'], [])
})

await test('forget_all ends all streams of a list whose turn comes when an earlier request is refused', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const first = await market.askedBy(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  browser.send({ ticks: ['R_1', 'R_2'], subscribe: 1, req_id: 2 })
  browser.send({ forget_all: 'ticks', req_id: 3 })
  await (await join()).rest()
  reply(first, refusal)
  t.match(await browser.next(), { req_id: 1, error: {} })
  for (const symbol of ['R_1', 'R_2']) reply(await market.next('ticks', symbol), price(1, `id-${symbol}`, symbol))
  t.match(await browser.next(), { req_id: 2, tick: {} })
  t.match(await browser.next(), { req_id: 2, tick: {} })
  t.same((await browser.next())['forget_all'], ['id-R_1', 'id-R_2'])
})

await test('forget_all ends a list that waited for two requests, after both are refused', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  for (const [index, ticks] of ['R_1', 'R_2', ['R_1', 'R_2', 'R_3']].entries())
    browser.send({ ticks, subscribe: 1, req_id: index + 1 })
  browser.send({ forget_all: 'ticks', req_id: 4 })
  await (await join()).rest()
  reply(await market.next('ticks', 'R_1'), refusal)
  t.match(await browser.next(), { req_id: 1, error: {} })
  reply(await market.next('ticks', 'R_2'), refusal)
  t.match(await browser.next(), { req_id: 2, error: {} })
  const list = ['R_1', 'R_2', 'R_3']
  for (const symbol of list) reply(await market.next('ticks', symbol), price(1, `id-${symbol}`, symbol))
  const got = []
  for (let n = 0; n < 4; n++) got.push(await browser.next())
  t.same(
    got.map(({ req_id }) => req_id),
    [3, 3, 3, 4],
  )
  t.same(
    got.at(-1)?.['forget_all'],
    list.map((s) => `id-${s}`),
  )
})

await test('a stream that is subscribed once a forget_all has waited for long enough goes on', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const slow = await market.askedBy(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  const held = new HeldTimers(t, 'setTimeout', HOLD_MS)
  browser.send({ forget_all: 'ticks', req_id: 2 })
  browser.send({ ticks: 'R_9', subscribe: 1, req_id: 3 })
  // The deadline of `until` lasts as long as the held timers.
  while (held.size === 0) await delay(1)
  held.run()
  const request = await market.next('ticks', 'R_9')
  reply(slow, price(1, 'id-1'))
  t.match(await browser.next(), { req_id: 1, tick: {} })
  t.same((await browser.next())['forget_all'], ['id-1'])
  reply(request, price(1, 'id-9', 'R_9'))
  t.match(await browser.next(), { req_id: 3, tick: { quote: 1 } })
  tick(request, 2, 2, 'id-9', 'R_9')
  t.match(await browser.next(), { req_id: 3, tick: { quote: 2 } })
})
