import { test, type Test } from 'tap'
import { Beats } from '../support/feed/beats.ts'
import {
  feedWorld,
  LOST,
  price,
  quotes,
  refusal,
  reply,
  served,
  subscribed,
  tick,
  type UpstreamRequest,
  history,
} from '../support/feed/world.ts'
import { until, within } from '../support/time/until.ts'

const SETTINGS = { FEED_RECONNECT_SPREAD_SECONDS: '0', FEED_LINGER_SECONDS: '1' }

/** Cuts a connection of the feed's as a broken network does. */
function reset({ socket }: UpstreamRequest): void {
  socket.terminate()
}

await test('when the connection of streams is lost, their browsers are closed and the streams come back', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market, join, metric, server } = world
  const { browser, request } = await subscribed(world, 'R_1')
  const reads = await join()
  await market.serve(reads, { time: 1, req_id: 1 }, { time: 1 })
  reset(request)
  // Without a connection it would be told after 5 seconds.
  t.same(await within(browser.client.closed, 'it is told once the connection is back', 4000), LOST)
  const renewed = await market.next('ticks', 'R_1')
  t.match(renewed.message, { subscribe: 1 })
  tick(renewed, 7, 7, 'other-id', 'R_1')
  const back = await join()
  t.match(
    await back.ask({ ticks: 'R_1', subscribe: 1 }),
    { tick: { quote: 7 } },
    'it finds the stream that was renewed',
  )
  t.match(await back.ask({ forget: 'other-id' }), { forget: 1 })
  t.same(await reads.rest(), [], 'a browser that only asked and was answered stays')
  t.equal((await metric('bff_feed_reconnects_total')).get(''), 1)
  t.match(
    server.log.find(({ msg }) => msg === 'the feed lost its upstream socket'),
    { level: 40, kind: 'stream' },
  )
  t.ok(server.log.some(({ msg }) => msg === 'the feed has its upstream socket again'))
  t.equal((await market.next('forget', 'other-id')).socket === renewed.socket, true, 'the stream lingers, and ends')
})

await test('when the connection of requests is lost, only browsers that wait for an answer are closed', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market, join } = world
  const { browser, request } = await subscribed(world, 'R_1')
  const waiting = await join()
  const read = await market.askedBy(waiting, { active_symbols: 'brief' })
  const joiner = await join()
  const history = await market.serve(
    joiner,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { history: { prices: [1], times: [1] }, subscription: { id: 'h' } },
  )
  const fetching = await join()
  await market.askedBy(fetching, { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 1 })
  read.socket.close(1001)
  t.same(await waiting.client.closed, LOST)
  t.same(await fetching.client.closed, LOST)
  tick(request, 2, 2, 'id-R_1', 'R_1')
  t.match(await browser.next(), { tick: { quote: 2 } })
  tick(history, 2, 2, 'h')
  t.match(await joiner.next(), { tick: { quote: 2 } })
})

await test('a browser that subscribes again to a stream that was lost before its first message is closed like all others', async (t) => {
  const { market, join, server } = await feedWorld(t, { ...SETTINGS, FEED_RECONNECT_SPREAD_SECONDS: '1' })
  const [first, second] = [await join(), await join()]
  const lost = (kind: string): Promise<void> =>
    until(() => server.log.some((line) => line.msg === 'the feed lost its upstream socket' && line['kind'] === kind))
  const subscription = await market.askedBy(first, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  await market.serve(
    first,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { ...history(10), subscription: { id: 'h' } },
  )
  second.send({ ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 })
  reset(await market.next('ticks_history'))
  await lost('request')
  second.send({ ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 })
  t.same(await second.client.closed, LOST, 'its history was lost')
  reset(subscription)
  await lost('stream')
  first.send({ ticks: 'R_1', subscribe: 1, req_id: 2 })
  t.same(await first.client.closed, LOST, 'its stream was lost')
  t.same(
    server.log.filter(({ level }) => level === 50),
    [],
  )
})

await test('a history that arrives after its stream was lost is sent to no browser', async (t) => {
  const { market, join } = await feedWorld(t, SETTINGS)
  const first = await join()
  const request = await market.serve(
    first,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { ...history(10), subscription: { id: 'h' } },
  )
  const second = await join()
  const late = await market.askedBy(second, { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 })
  const ahead = await join()
  await market.serve(ahead, { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 3 }, history(12))
  reset(request)
  for (const browser of [first, second, ahead]) t.same(await browser.client.closed, LOST)
  const renewed = await market.next('ticks_history')
  reply(renewed, { ...history(20), subscription: { id: 'new' } })
  reply(late, history(10))
  const third = await join()
  const fresh = await market.askedBy(third, { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 })
  tick(renewed, 20.5, 20, 'new')
  tick(renewed, 21, 21, 'new')
  reply(fresh, history(20))
  t.match(await third.next(), { history: { times: [19, 20] }, subscription: { id: 'new' } })
  t.same(quotes(await third.rest()), [20.5, 21])
})

await test('a stream that upstream refuses to renew is asked for again', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market, join, metric } = world
  const symbols = ['R_1', 'R_2', 'R_3', 'R_4']
  const browsers = []
  for (const symbol of symbols) browsers.push(await subscribed(world, symbol))
  let asked = 0
  market.auto = (message) => {
    if (message['ticks'] === undefined) return undefined
    return asked++ % 2 === 1 ? refusal('RateLimit') : served(message, 5)
  }
  const [first] = browsers
  if (first !== undefined) reset(first.request)
  for (const { browser } of browsers) t.same(await browser.client.closed, LOST)
  for (const symbol of symbols) {
    const back = await join()
    t.match(await back.ask({ ticks: symbol, subscribe: 1 }), { tick: { quote: 5, symbol } })
  }
  t.ok(asked > symbols.length)
  t.ok(((await metric('bff_feed_refused_resubscriptions_total')).get('') ?? 0) > 0)
})

await test('a forget that upstream refuses is sent again after a pause, not for every price that still comes', async (t) => {
  const beats = new Beats(t)
  const world = await feedWorld(t, { ...SETTINGS, FEED_LINGER_SECONDS: '0' })
  const { market } = world
  const { browser, request } = await subscribed(world, 'R_1')
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  reply(await market.next('forget'), { msg_type: 'forget', error: { code: 'RateLimit', message: '' } })
  for (let quote = 2; quote < 50; quote++) tick(request, quote, quote, 'id-R_1', 'R_1')
  // Both travel on the same connection, so whatever the prices led to is there before the second request.
  for (const symbol of ['R_2', 'R_3']) {
    tick(await market.askedBy(browser, { ticks: symbol, subscribe: 1 }), 1, 1, `id-${symbol}`, symbol)
    t.match(await browser.next(), { tick: { symbol } })
  }
  t.equal(market.asked('forget').length, 1)
  beats.pass()
  reply(await market.next('forget', 'id-R_1'), { msg_type: 'forget', forget: 1 })
  t.same(await browser.rest(), [])
  t.equal(market.asked('forget').length, 2)
})

await test('a server that stops closes its browsers with 1012 and its upstream connections', async (t: Test) => {
  const world = await feedWorld(t, SETTINGS)
  const { browser } = await subscribed(world, 'R_1')
  browser.send('{"proposal":1}')
  await world.market.next('proposal')
  await world.server.close()
  t.equal((await browser.client.closed).code, 1012)
  await until(() => world.upstream.open === 0)
})

await test('between a loss of upstream and 1013, a forget is answered 0 for a lost stream, and 1 for one that goes on', async (t) => {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '600', FEED_SUBSCRIPTIONS_PER_SOCKET: '1' })
  const { browser, request } = await subscribed(world, 'R_1')
  const other = await world.market.serve(browser, { ticks: 'R_2', subscribe: 1, req_id: 2 }, price(1, 'id-R_2', 'R_2'))
  t.not(other.socket, request.socket)
  reset(request)
  await until(async () => (await world.metric('bff_feed_subscribers')).get('') === 1, 'the loss is noticed')
  t.match(await browser.ask({ forget: 'id-R_1', req_id: 3 }), { forget: 0, req_id: 3 })
  t.match(await browser.ask({ forget: 'id-R_2', req_id: 4 }), { forget: 1, req_id: 4 })
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 5 }))['forget_all'], [])
  browser.send({ ticks: 'R_1', subscribe: 1, req_id: 6 })
  t.match(await browser.next(), { req_id: 6, error: { code: 'AlreadySubscribed' } }, 'it has to come back first')
})
