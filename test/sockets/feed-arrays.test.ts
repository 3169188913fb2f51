import { test } from 'tap'
import { feedWorld, reply, tick } from '../support/feed-world.ts'

await test('FEED_SUBSCRIPTIONS counts every symbol of an array', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_SUBSCRIPTIONS: '3' })
  market.auto = (request) => {
    for (const symbol of [request.message['ticks']].flat().map(String)) tick(request, 1, 1, `id-${symbol}`, symbol)
    return true
  }
  const browser = await join()
  t.match(await browser.ask({ ticks: 'A', subscribe: 1 }), { tick: { symbol: 'A' } })
  t.match(await browser.ask({ ticks: ['B', 'C', 'D'], subscribe: 1 }), { error: { code: 'RateLimit' } })
  t.match(await browser.ask({ ticks: ['B', 'C'], subscribe: 1 }), { tick: { symbol: 'B' } })
  t.match(await browser.next(), { tick: { symbol: 'C' } })
  t.match(await browser.ask({ ticks: 'D', subscribe: 1 }), { error: { code: 'RateLimit' } })
  t.equal(market.asked('ticks').length, 2)
})

await test('a browser whose symbol arrays have no place shares its histories all the same', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_MAX_SOCKETS: '1' })
  const [browser, other] = [await join(), await join()]
  browser.send({ ticks: ['A', 'B'], subscribe: 1 })
  const own = await market.next('ticks')
  for (const symbol of ['A', 'B']) {
    tick(own, 1, 1, `id-${symbol}`, symbol)
    t.match(await browser.next(), { tick: { symbol } })
  }
  const asked = { ticks_history: 'C', subscribe: 1, end: 'latest' }
  const answer = { msg_type: 'history', history: { prices: [1], times: [1] }, subscription: { id: 'h' } }
  browser.send(asked)
  const request = await market.next('ticks_history')
  t.ok(request.socket !== own.socket)
  other.send(asked)
  await other.rest()
  reply(request, answer)
  for (const each of [browser, other]) t.match(await each.next(), answer)
  t.equal(market.asked('ticks_history').length, 1)
})
