import { test } from 'tap'
import { feedWorld, reply, tick } from '../support/feed-world.ts'
import { until } from '../support/until.ts'

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
  const error = { code: 'MarketIsClosed', message: '' }
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
    t.match(await browser.next(), { req_id: 4, forget_all: hasOwn ? ['id-3', 'of-own'] : ['id-3'] })
    if (hasOwn) reply(await market.next('ping'), { msg_type: 'ping', ping: 'pong' })
    t.match(await browser.next(), { req_id: 5, ping: 'pong' })
    const other = await join()
    t.match(await other.ask({ ticks: symbol, subscribe: 1 }), { tick: { quote: 1 } }, 'the stream lingers')
    tick(third, 2, 2, 'id-3', symbol)
    t.match(await other.next(), { tick: { quote: 2 } })
    t.equal(browser.client.received.length, 5)
  }
})
