import { test } from 'tap'
import { feedWorld, type Message, quotes, refusal, reply, served, tick } from '../support/feed/world.ts'

const LIMITED = { error: { code: 'RateLimit' } }

/** Answers subscriptions as upstream does: a symbol that begins with X is unknown. */
const serve = (message: Message): Message =>
  String(message['ticks']).startsWith('X') ? refusal('InvalidSymbol') : served(message)

await test('each symbol of an array is a subscription of its own, shared with others, under the request of the browser', async (t) => {
  const { market, join, upstream } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const ofB = await market.askedBy(second, { ticks: 'B', subscribe: 1, req_id: 2 })
  const asked = { ticks: ['A', 'B'], subscribe: 1, req_id: 1, passthrough: { page: 1 } }
  const ofA = await market.askedBy(first, asked)
  t.match(JSON.parse(ofA.text), { ticks: 'A', subscribe: 1, passthrough: undefined })
  tick(ofB, 1, 1, 'id-b', 'B')
  t.match(await second.next(), { req_id: 2, tick: { symbol: 'B' } })
  t.same(await first.rest(), [], 'A may still be refused')
  tick(ofA, 2, 2, 'id-a', 'A')
  for (const [symbol, id] of [
    ['A', 'id-a'],
    ['B', 'id-b'],
  ]) {
    t.match(await first.next(), {
      echo_req: asked,
      req_id: 1,
      passthrough: { page: 1 },
      tick: { symbol },
      subscription: { id },
    })
  }
  t.match(await first.ask({ ticks: 'B', subscribe: 1 }), { error: { code: 'AlreadySubscribed' } })
  t.match(await first.ask({ forget: 'id-b' }), { forget: 1 })
  tick(ofA, 3, 3, 'id-a', 'A')
  tick(ofB, 4, 4, 'id-b', 'B')
  t.same(quotes(await first.rest()), [3])
  t.same(quotes(await second.rest()), [4])
  t.match(await first.ask({ ticks: ['B', 'A'], subscribe: 1 }), {
    error: { code: 'AlreadySubscribed', message: 'You are already subscribed to A' },
  })
  t.match(await first.ask({ ticks: ['B'], subscribe: 1 }), { tick: { quote: 4 } })
  t.equal(upstream.open, 1)
})

await test('an array with a symbol that upstream refuses is answered with that error, and with nothing else', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const asked = { ticks: ['A', 'X', 'B'], subscribe: 1, req_id: 1 }
  browser.send(asked)
  const [ofA, ofX] = [await market.next('ticks', 'A'), await market.next('ticks', 'X')]
  browser.send({ ticks: 'A', subscribe: 1, req_id: 2 })
  tick(ofA, 1, 1, 'id-A', 'A')
  t.same(await browser.rest(), [])
  reply(ofX, { msg_type: 'tick', error: { code: 'InvalidSymbol', message: 'of upstream' } })
  t.same(await browser.next(), {
    echo_req: asked,
    req_id: 1,
    error: { code: 'InvalidSymbol', message: 'of upstream' },
    msg_type: 'tick',
  })
  t.match(await browser.next(), { req_id: 2, tick: { quote: 1 } }, 'the symbols are free again')
  tick(await market.next('ticks', 'B'), 1, 1, 'id-B', 'B')
  t.same(await browser.rest(), [])
})

await test('an array costs one request of FEED_REQUESTS_PER_MINUTE, and each symbol counts in FEED_SUBSCRIPTIONS', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_SUBSCRIPTIONS: '4', FEED_REQUESTS_PER_MINUTE: '2' })
  market.auto = serve
  const browser = await join()
  t.match(await browser.ask({ ticks: ['A', 'B', 'C'], subscribe: 1 }), { tick: { symbol: 'A' } })
  await browser.rest()
  t.match(await browser.ask({ ticks: ['D', 'E'], subscribe: 1 }), LIMITED)
  t.match(await browser.ask({ ticks: ['D'], subscribe: 1 }), { tick: { symbol: 'D' } })
  await browser.ask({ forget_all: 'ticks' })
  t.match(await browser.ask({ ticks: ['A', 'B'], subscribe: 1 }), { tick: { symbol: 'A' } }, 'streams that exist')
  await browser.rest()
  t.match(await browser.ask({ ticks: ['E'], subscribe: 1 }), LIMITED)
})

await test('a symbol without a price holds up the others for a second, and may be refused later, alone', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send({ ticks: ['OPEN', 'CLOSED'], subscribe: 1, req_id: 1 })
  const [open, closed] = [await market.next('ticks', 'OPEN'), await market.next('ticks', 'CLOSED')]
  tick(open, 1, 1, 'id-open', 'OPEN')
  tick(open, 2, 2, 'id-open', 'OPEN')
  t.match(await browser.next(), { req_id: 1, tick: { quote: 2 } })
  t.match(await browser.ask({ ticks: 'CLOSED', subscribe: 1, req_id: 2 }), { error: { code: 'AlreadySubscribed' } })
  reply(closed, { msg_type: 'tick', error: { code: 'MarketIsClosed', message: '' } })
  t.match(await browser.next(), { req_id: 1, error: { code: 'MarketIsClosed' } })
  tick(open, 3, 3, 'id-open', 'OPEN')
  t.same(quotes(await browser.rest()), [3])
})

await test('each symbol of an array that has its first price later is sent it at once', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send({ ticks: ['A', 'B', 'C'], subscribe: 1 })
  tick(await market.next('ticks', 'A'), 1, 1, 'id-A', 'A')
  t.match(await browser.next(), { tick: { symbol: 'A' } })
  for (const symbol of ['B', 'C']) {
    tick(await market.next('ticks', symbol), 2, 2, `id-${symbol}`, symbol)
    t.match(await browser.next(), { tick: { symbol, quote: 2 } })
  }
})

await test('arrays of one address push nobody onto own sockets', async (t) => {
  const { market, join, upstream } = await feedWorld(t, { FEED_MAX_SOCKETS: '4' })
  market.auto = serve
  const common = Array.from({ length: 8 }, (_, at) => `R_${at}`)
  const greedy = await Promise.all(Array.from({ length: 10 }, () => join()))
  for (const [at, browser] of greedy.entries()) {
    t.match(await browser.ask({ ticks: [...common, `Y_${at}`], subscribe: 1 }), { tick: { symbol: 'R_0' } })
  }
  for (const browser of [await join(), await join()]) {
    t.match(await browser.ask({ ticks: ['R_1', 'R_2'], subscribe: 1 }), { tick: { symbol: 'R_1' } })
    t.match(await browser.next(), { tick: { symbol: 'R_2' } })
  }
  t.equal(upstream.open, 1)
  t.equal(market.asked('ticks').length, 18)
})

await test('an array that has no place for one of its symbols is refused as a whole', async (t) => {
  const { market, join } = await feedWorld(t, {
    FEED_MAX_SOCKETS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '3',
    FEED_SUBSCRIPTIONS: '3',
  })
  market.auto = serve
  const [browser, other] = [await join(), await join()]
  t.match(await other.ask({ ticks: 'D', subscribe: 1 }), { tick: {} })
  t.match(await browser.ask({ ticks: ['A', 'B', 'C'], subscribe: 1, req_id: 1 }), { req_id: 1, ...LIMITED })
  t.same(await browser.rest(), [])
  t.match(await browser.ask({ ticks: ['A', 'B'], subscribe: 1 }), { tick: { symbol: 'A' } })
})

await test('the end of a symbol leaves the others of its array to their browsers', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send({ ticks: ['ENDS', 'STAYS'], subscribe: 1, req_id: 1 })
  const [ends, stays] = [await market.next('ticks', 'ENDS'), await market.next('ticks', 'STAYS')]
  tick(ends, 1, 1, 'id-ENDS', 'ENDS')
  tick(stays, 1, 1, 'id-STAYS', 'STAYS')
  t.same(quotes(await browser.rest()), [1, 1])
  const error = { code: 'MarketIsClosed', message: '' }
  reply(ends, { msg_type: 'tick', subscription: { id: 'id-ENDS' }, error })
  t.match(await browser.next(), { req_id: 1, subscription: { id: 'id-ENDS' }, error })
  tick(stays, 2, 2, 'id-STAYS', 'STAYS')
  t.match(await browser.next(), { req_id: 1, tick: { quote: 2 } })
  t.match(await browser.ask({ forget: 'id-ENDS' }), { forget: 0 })
  t.same((await browser.ask({ forget_all: 'ticks' }))['forget_all'], ['id-STAYS'])
})
