import { test, type Test } from 'tap'
import {
  FeedBrowser,
  type FeedWorld,
  feedWorld,
  history,
  type Message,
  price,
  quotes,
  reply,
  tick,
} from '../support/feed/world.ts'
import { PUBLIC } from '../support/user.ts'

const asked = (symbol: string, reqId: number, extra: Message = {}): Message => ({
  ticks_history: symbol,
  subscribe: 1,
  end: 'latest',
  req_id: reqId,
  ...extra,
})
const refusal = { msg_type: 'ticks_history', error: { code: 'InputValidationFailed', message: 'of upstream' } }
const limited = { error: { code: 'RateLimit', message: 'You have reached the rate limit for ticks_history.' } }

/** A browser with a living stream whose history ends with 100. */
async function living(t: Test, { market, join }: FeedWorld, symbol: string) {
  const first = await join()
  first.send(asked(symbol, 1))
  const request = await market.next('ticks_history', symbol)
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await first.next(), history(100))
  return { first, request }
}

/** Asks for the time, and answers that. What upstream has sent before on the connection of requests has been handled then. */
async function askTime({ market }: FeedWorld, browser: FeedBrowser, answer: Message): Promise<Message> {
  reply(await market.askedBy(browser, { time: 1 }), { msg_type: 'time', ...answer })
  return browser.next()
}

await test('a history that is fetched for a browser is a request of the browser, and of its address', async (t) => {
  const world = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '2', TRUST_PROXY: '1' })
  const { market } = world
  const from = async (address: string): Promise<FeedBrowser> =>
    new FeedBrowser(await world.socket(PUBLIC, { headers: { 'x-forwarded-for': address } }).opened())
  await living(t, world, 'R_1')
  const browser = await from('192.0.2.1')
  for (const count of [1, 2]) {
    browser.send(asked('R_1', count, { count }))
    reply(await market.next('ticks_history', 'R_1'), history(100))
    t.match(await browser.next(), { req_id: count, history: {} })
    t.match(await browser.ask({ forget: 'h' }), { forget: 1 })
  }
  t.match(await browser.ask(asked('R_1', 3, { count: 3 })), { req_id: 3, ...limited })
  t.match(await browser.ask({ forget: 'h' }), { forget: 0 }, 'it has no stream')

  const error = { code: 'RateLimit', message: 'of upstream' }
  t.match(await askTime(world, await from('192.0.2.2'), { error }), { error })
  t.match(await (await from('192.0.2.1')).ask(asked('R_1', 4, { count: 4 })), limited, 'upstream limits all')
  t.equal(market.asked('ticks_history').length, 3)
})

await test('who is served with what another browser has asked for is a cache hit', async (t) => {
  const world = await feedWorld(t)
  const { market, join, metric } = world
  const hits = async (operation: string): Promise<number> =>
    (await metric('bff_feed_cache_hits_total')).get(`operation="${operation}"`) ?? 0
  await living(t, world, 'R_1')
  const [second, third] = [await join(), await join()]
  second.send(asked('R_1', 2, { count: 2 }))
  const fetch = await market.next('ticks_history', 'R_1')
  t.equal(await hits('ticks_history'), 0)
  third.send(asked('R_1', 3, { count: 2 }))
  await third.rest()
  t.equal(await hits('ticks_history'), 1)
  reply(fetch, history(100))
  for (const browser of [second, third]) t.match(await browser.next(), history(100))

  await market.serve(second, { ticks: 'R_2', subscribe: 1 }, price(1))
  t.equal(await hits('ticks'), 0)
  t.match(await third.ask({ ticks: 'R_2', subscribe: 1 }), { tick: { quote: 1 } })
  t.equal(await hits('ticks'), 1)
})

await test('who waits for a stream whose request is refused, and may ask no more, is told so once', async (t) => {
  const world = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '2' })
  const { market, join, metric } = world
  const [first, spent, other] = [await join(), await join(), await join()]
  for (let count = 0; count < 2; count++) await askTime(world, spent, { time: 1 })
  first.send(asked('R_1', 1, { end: 'never' }))
  const refused = await market.next('ticks_history')
  spent.send(asked('R_1', 2, { count: 2 }))
  await spent.rest()
  other.send(asked('R_1', 3, { count: 3 }))
  await other.rest()
  reply(refused, refusal)
  t.match(await first.next(), { req_id: 1, error: refusal.error })
  t.match(await spent.next(), { req_id: 2, ...limited })
  const request = await market.next('ticks_history')
  t.match(request.message, { count: 3 })
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await other.next(), { req_id: 3, history: {} })

  tick(refused, 101, 101, 'late')
  t.ok(await market.next('forget', 'late'), 'what the refused request starts all the same is for nobody')
  tick(request, 102, 102, 'h')
  t.same(quotes(await other.rest()), [102])
  for (const browser of [first, spent]) t.same(await browser.rest(), [])
  t.equal((await metric('bff_feed_subscribers')).get(''), 1)
})

await test('whoever waits for a history when its stream ends hears of that, and nothing more', async (t) => {
  const world = await feedWorld(t)
  const { market, join } = world
  const { first, request } = await living(t, world, 'R_1')
  const second = await join()
  second.send(asked('R_1', 2, { count: 2 }))
  const fetch = await market.next('ticks_history', 'R_1')
  const end = { msg_type: 'tick', subscription: { id: 'h' }, error: { code: 'MarketIsClosed', message: '' } }
  reply(request, end)
  t.match(await first.next(), { req_id: 1, ...end })
  t.match(await second.next(), { req_id: 2, ...end })
  reply(fetch, history(100))
  await askTime(world, first, { time: 1 })
  t.same(await second.rest(), [])
})

await test('the first answer to a request is its history, and whatever comes later on the stream follows', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send(asked('R_1', 1))
  const request = await market.next('ticks_history')
  tick(request, 100, 100, 'h')
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await browser.next(), { req_id: 1, history: {} })
  reply(request, { msg_type: 'notice', notice: 'a holiday', subscription: { id: 'h' } })
  t.match(await browser.next(), { req_id: 1, notice: 'a holiday' })
  tick(request, 101, 101, 'h')
  t.same(quotes(await browser.rest()), [101])
})

await test('a long history reaches all who have asked for the same, each with the id of the stream', async (t) => {
  const world = await feedWorld(t)
  await living(t, world, 'R_1')
  const times = Array.from({ length: 1000 }, (_, index) => index - 899)
  const long = { msg_type: 'history', history: { prices: times, times } }
  const browsers = [await world.join(), await world.join(), await world.join()]
  const requests = browsers.map((_, reqId) => asked('R_1', reqId, { count: 1000 }))
  for (const [reqId, browser] of browsers.entries()) {
    browser.send(requests[reqId] ?? {})
    await browser.rest()
  }
  reply(await world.market.next('ticks_history'), long)
  for (const [reqId, browser] of browsers.entries()) {
    const own = { echo_req: requests[reqId], req_id: reqId }
    t.same(await browser.next(), { ...own, ...long, subscription: { id: 'h' } })
  }
})
