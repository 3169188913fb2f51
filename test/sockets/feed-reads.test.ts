import { test } from 'tap'
import { feedWorld, reply } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

await test('reads with PUBLIC_FEED=shared', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_CACHE_SECONDS: '3' })

  await t.test('equal reads share one request while it is on its way and for FEED_CACHE_SECONDS', async (t) => {
    const browsers = [await join(), await join(), await join()]
    const [first, second, third] = browsers
    first?.send({ active_symbols: 'brief', req_id: 1 })
    second?.send('{ "req_id" : 0, "active_symbols" : "brief" }')
    const request = await market.next('active_symbols')
    await second?.rest()
    reply(request, { msg_type: 'active_symbols', active_symbols: [{ symbol: 'R_100' }] })
    const shared = { msg_type: 'active_symbols', active_symbols: [{ symbol: 'R_100' }] }
    t.match(await first?.next(), { req_id: 1, ...shared })
    t.match(await second?.next(), { req_id: 0, ...shared })
    t.match(await third?.ask({ active_symbols: 'brief' }), { echo_req: { active_symbols: 'brief' }, ...shared })
    t.equal(market.asked('active_symbols').length, 1)
    t.equal((await metric('bff_feed_cache_hits_total')).get('operation="active_symbols"'), 2)
    // After that, upstream is asked again.
    await until(async () => {
      third?.send({ active_symbols: 'brief' })
      return market.asked('active_symbols').length > 1
    })
    t.match((await market.next('active_symbols')).message, { active_symbols: 'brief' })
  })

  await t.test('an error reaches all who wait, and is not kept', async (t) => {
    const [first, second] = [await join(), await join()]
    const request = await market.askedBy(first, { contracts_for: 'NONE', req_id: 1 })
    second.send({ contracts_for: 'NONE', req_id: 2 })
    await second.rest()
    reply(request, { msg_type: 'contracts_for', error: { code: 'InvalidSymbol', message: '' } })
    t.match(await first.next(), { req_id: 1, error: { code: 'InvalidSymbol' } })
    t.match(await second.next(), { req_id: 2, error: { code: 'InvalidSymbol' } })
    second.send({ contracts_for: 'NONE', req_id: 3 })
    reply(await market.next('contracts_for'), { msg_type: 'contracts_for', contracts_for: {} })
    t.match(await second.next(), { req_id: 3, contracts_for: {} })
  })

  await t.test('one browser may use a req_id twice, and the time is asked for each', async (t) => {
    const browser = await join()
    browser.send({ time: 1, req_id: 1 })
    browser.send({ time: 1, req_id: 1 })
    const [first, second] = [await market.next('time'), await market.next('time')]
    t.not(first.message['req_id'], second.message['req_id'])
    reply(second, { msg_type: 'time', time: 2 })
    t.match(await browser.next(), { req_id: 1, time: 2 })
    reply(first, { msg_type: 'time', time: 1 })
    t.match(await browser.next(), { req_id: 1, time: 1 }, 'answers come in the order in which upstream gives them')
  })

  await t.test('an answer to a browser that has left reaches the others', async (t) => {
    const [gone, stays] = [await join(), await join()]
    const request = await market.askedBy(gone, { trading_times: 'today', req_id: 1 })
    stays.send({ trading_times: 'today', req_id: 2 })
    await stays.rest()
    gone.client.socket.terminate()
    await gone.client.closed
    reply(request, { msg_type: 'trading_times', trading_times: {} })
    t.match(await stays.next(), { req_id: 2, trading_times: {} })
  })

  await t.test('a history without a stream, and the answer to an unknown value, are upstream’s', async (t) => {
    const [first, second] = [await join(), await join()]
    const request = await market.askedBy(first, { ticks_history: 'R_1', end: 'latest', req_id: 1 })
    second.send({ end: 'latest', ticks_history: 'R_1', req_id: 2 })
    await second.rest()
    reply(request, { msg_type: 'history', history: { prices: [1], times: [1] } })
    t.match(await first.next(), { req_id: 1, history: { prices: [1] } })
    t.match(await second.next(), { req_id: 2, history: { prices: [1] } })
    const odd = await market.askedBy(first, { ping: 2, req_id: 4 })
    t.ok(odd.socket !== request.socket, 'on a socket of its own')
    reply(odd, { msg_type: 'ping', error: { code: 'InputValidationFailed', message: '' } })
    t.match(await first.next(), { req_id: 4, error: { code: 'InputValidationFailed' } })
  })
})

await test('FEED_CACHE_SECONDS=0 shares only what is on its way', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
  const [first, second] = [await join(), await join()]
  const request = await market.askedBy(first, { contracts_list: 1, req_id: 1 })
  second.send({ contracts_list: 1, req_id: 2 })
  await second.rest()
  reply(request, { contracts_list: [] })
  t.match(await first.next(), { req_id: 1 })
  t.match(await second.next(), { req_id: 2 })
  reply(await market.askedBy(second, { contracts_list: 1, req_id: 3 }), { contracts_list: [1] })
  t.match(await second.next(), { req_id: 3, contracts_list: [1] })
})

await test('a single price is shared for a moment, however long other answers are kept', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '3600' })
  market.auto = () => ({ msg_type: 'answer', value: market.requests.length })
  const browser = await join()
  await browser.ask({ active_symbols: 'brief' })
  await until(async () => {
    await browser.ask({ ticks: 'R_1' })
    return market.asked('ticks').length > 2
  }, 'upstream is asked for the price again and again')
  await browser.ask({ active_symbols: 'brief' })
  t.equal(market.asked('active_symbols').length, 1)
})

await test('requests that are answered no longer count as waiting, however many a browser sends', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '1000', MAX_BUFFERED_BYTES: '200000' })
  market.auto = () => ({ msg_type: 'time', time: 1 })
  const browser = await join()
  const passthrough = { a: 'x'.repeat(3000) }
  for (let count = 0; count < 100; count++) t.match(await browser.ask({ time: 1, passthrough }), { time: 1 })
})

await test('answers that are kept no longer count as waiting, however often a browser asks for them', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '3600', MAX_BUFFERED_BYTES: '200000' })
  market.auto = () => ({ active_symbols: [] })
  const browser = await join()
  const request = { active_symbols: 'brief', passthrough: { a: 'x'.repeat(3000) } }
  for (let count = 0; count < 100; count++) t.match(await browser.ask(request), { active_symbols: [] })
  t.equal(market.requests.length, 1)
})

await test('a browser whose requests wait for too many answers is read no further until they are there', async (t) => {
  const { market, join } = await feedWorld(t, { MAX_BUFFERED_BYTES: '200000' })
  const [browser, other] = [await join(), await join()]
  for (let req_id = 1; req_id <= 100; req_id++) {
    browser.send({ active_symbols: 'brief', passthrough: { a: 'x'.repeat(3000) }, req_id })
  }
  browser.send({ ping: 1, req_id: 101 })
  const request = await market.next('active_symbols')
  for (let count = 0; count < 20; count++) await other.ask({ ping: 1 })
  reply(request, { active_symbols: [] })
  for (let req_id = 1; req_id <= 100; req_id++) t.match(await browser.next(), { req_id, active_symbols: [] })
  t.match(await browser.next(), { req_id: 101, ping: 'pong' })
  t.equal(market.requests.length, 1)
})
