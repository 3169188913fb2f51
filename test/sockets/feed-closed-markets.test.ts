import { test } from 'tap'
import { feedWorld, reply, tick } from '../support/feed/world.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const refused = (msg_type: string) => ({ msg_type, error: { code: 'MarketIsClosed', message: 'opens on Monday' } })

await test('everybody who asks for a stream of a closed market gets its refusal for 30 seconds, and upstream is asked once', async (t) => {
  const { market, join } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const pass = clockAhead(t)
  const ticks = { ticks: 'R_1', subscribe: 1 }
  const candles = { ticks_history: 'R_1', style: 'candles', granularity: 60, end: 'latest', count: 10, subscribe: 1 }
  for (const [operation, request] of Object.entries({ ticks, ticks_history: candles })) {
    first.send({ ...request, req_id: 1 })
    reply(await market.next(operation), refused(operation))
    t.match(await first.next(), { req_id: 1, ...refused(operation) })
    for (const browser of [first, second]) {
      const passthrough = { of: operation }
      const answer = await browser.ask({ ...request, req_id: 2, passthrough })
      t.same(answer, {
        echo_req: { ...request, req_id: 2, passthrough },
        req_id: 2,
        passthrough,
        ...refused(operation),
      })
    }
    t.equal(market.asked(operation).length, 1)
  }
  pass(29_000)
  t.match(await second.ask(ticks), refused('ticks'))
  // Another stream of the same market is another matter.
  const minutes = await market.askedBy(second, { ...candles, granularity: 120 })
  reply(minutes, refused('ticks_history'))
  t.match(await second.next(), refused('ticks_history'))
  pass(2000)
  tick(await market.askedBy(first, ticks), 1, 1, 'open')
  t.match(await first.next(), { tick: { quote: 1 } })
  t.match(await second.ask(ticks), { tick: { quote: 1 } }, 'it is open')
})

await test('a list with a symbol whose market is closed is refused as a whole, and starts no stream', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const browser = await join()
  reply(await market.askedBy(browser, { ticks: 'CLOSED', subscribe: 1 }), refused('tick'))
  t.match(await browser.next(), refused('tick'))
  t.match(await browser.ask({ ticks: ['OPEN', 'CLOSED'], subscribe: 1, req_id: 3 }), { req_id: 3, ...refused('tick') })
  t.same(market.asked('ticks').length, 1)
  t.equal((await metric('bff_feed_subscribers')).get(''), 0)
  tick(await market.askedBy(browser, { ticks: 'OPEN', subscribe: 1 }), 1, 1, 'open', 'OPEN')
  t.match(await browser.next(), { tick: { symbol: 'OPEN' } })
})

await test('all who wait for the stream of a closed market are refused at once, whatever history they have asked for', async (t) => {
  const { market, join } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const request = { ticks_history: 'R_1', end: 'latest', style: 'ticks', subscribe: 1 }
  first.send({ ...request, count: 1, req_id: 1 })
  const asked = await market.next('ticks_history')
  second.send({ ...request, count: 2, req_id: 2 })
  first.send({ ...request, count: 1, req_id: 3 })
  await Promise.all([first.rest(), second.rest()])
  reply(asked, refused('history'))
  for (const id of [1, 3]) t.match(await first.next(), { req_id: id, ...refused('history') })
  t.match(await second.next(), { req_id: 2, ...refused('history') })
  t.equal(market.asked('ticks_history').length, 1)
})
