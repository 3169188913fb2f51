import { test } from 'tap'
import { feedWorld, price, quotes, reply, tick } from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const closed = { msg_type: 'tick', subscription: { id: 'id-1' }, error: { code: 'MarketIsClosed', message: '' } }

await test('who has been told that it is subscribed already is told nothing else when the stream ends', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  for (const id of [1, 2]) browser.send({ ticks: 'R_1', subscribe: 1, req_id: id })
  const request = await market.next('ticks')
  await browser.rest()
  tick(request, 1, 1, 'id-1')
  t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
  t.match(await browser.next(), { req_id: 2, error: { code: 'AlreadySubscribed' } })
  reply(request, closed)
  t.match(await browser.next(), { req_id: 1, ...closed })
  t.same(await browser.rest(), [])
  t.equal(market.asked('ticks').length, 1)
})

await test('a browser whose many requests wait is read no further, and all are answered in their order', async (t) => {
  const { market, join, metric } = await feedWorld(t, { MAX_BUFFERED_BYTES: '50000' })
  const other = await join()
  const requests = [
    {
      operation: 'ticks',
      request: { ticks: 'R_1', subscribe: 1 },
      answer: { tick: { quote: 1 }, subscription: { id: 'a' } },
    },
    { operation: 'active_symbols', request: { active_symbols: 'brief' }, answer: { active_symbols: [] } },
    { operation: 'contracts_for', request: { contracts_for: 'NONE' }, answer: { error: { code: 'InvalidSymbol' } } },
  ]
  const ids = Array.from({ length: 150 }, (_, id) => id)
  for (const { operation, request, answer } of requests) {
    const browser = await join()
    for (const id of ids) browser.send({ ...request, req_id: id })
    const asked = await market.next(operation)
    // Meanwhile the server has had the time to read all of them.
    for (let round = 0; round < 5; round++) await other.rest()
    const taken = (await metric('bff_relay_operations_total')).get(`operation="${operation}"`) ?? 0
    t.ok(taken < ids.length, `${taken} requests for ${operation}`)
    // An error is not kept: those that are read later are asked for again.
    market.auto = (message) => (operation in message ? answer : undefined)
    reply(asked, answer)
    const answers = await Promise.all(ids.map(() => browser.next()))
    t.same(
      answers.map(({ req_id }) => req_id),
      ids,
      operation,
    )
  }
})

await test('a stream that upstream ends with whatever error is over, and can be asked for again', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  for (const code of ['MarketIsClosed', 'AlreadySubscribed', 'RateLimit']) {
    const request = await market.askedBy(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 })
    tick(request, 1, 1, 'id-1')
    t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
    const end = { msg_type: 'tick', error: { code, message: 'of upstream' } }
    reply(request, end)
    t.match(await browser.next(), { req_id: 1, ...end })
    t.match(await browser.ask({ forget: 'id-1' }), { forget: 0 })
  }
  t.equal(market.asked('ticks').length, 3)
})

await test('a stream that upstream refuses to start, whatever its error, is asked for again only when a browser asks', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  for (const code of ['InvalidSymbol', 'RateLimit']) {
    browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
    const error = { code, message: 'of upstream' }
    reply(await market.next('ticks'), { msg_type: 'tick', error })
    t.match(await browser.next(), { req_id: 1, error })
  }
  t.equal(market.asked('ticks').length, 2)
})

await test('a stream that somebody has come back to does not end when its time would have been over', async (t) => {
  const lingering = new HeldTimers(t, 'setTimeout', 7000)
  const { market, join } = await feedWorld(t, { FEED_LINGER_SECONDS: '7' })
  const [first, second] = [await join(), await join()]
  const request = await market.serve(first, { ticks: 'R_1', subscribe: 1 }, price(1, 'id-1'))
  t.match(await first.ask({ forget: 'id-1' }), { forget: 1 })
  t.match(await second.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 1 } })
  lingering.run()
  tick(request, 2, 2, 'id-1')
  t.same(quotes([await second.next()]), [2])
  t.match(await second.ask({ forget: 'id-1' }), { forget: 1 })
  lingering.run()
  t.ok(await market.next('forget', 'id-1'))
})
