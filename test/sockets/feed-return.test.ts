import { test } from 'tap'
import {
  type FeedBrowser,
  type FeedWorld,
  feedWorld,
  LOST,
  price,
  quotes,
  reply,
  subscribed,
  tick,
} from '../support/feed/world.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const SETTINGS = { FEED_RECONNECT_SPREAD_SECONDS: '0' }
const REFUSED = { msg_type: 'tick', error: { code: 'InternalServerError', message: '' } }

/** Lets upstream accept connections, or refuse them. */
function setAway({ upstream }: FeedWorld, isAway: boolean): void {
  upstream.onUpgrade = isAway ? (_request, socket) => void socket.destroy() : undefined
}

function gauge({ metric }: FeedWorld, name: string, value: number): Promise<void> {
  return until(async () => (await metric(name)).get('') === value, `${name} is ${value}`)
}

async function leave(world: FeedWorld, browser: FeedBrowser): Promise<void> {
  browser.client.socket.terminate()
  await gauge(world, 'bff_feed_subscribers', 0)
}

/** The symbols that upstream was asked for, but for the first ones. */
function symbolsAfter({ market }: FeedWorld, count: number): unknown[] {
  return market
    .asked('ticks')
    .slice(count)
    .map(({ message }) => message['ticks'])
}

await test('a stream that nobody has while upstream is away is renewed for those who come back', async (t) => {
  const lingering = new HeldTimers(t, 'setTimeout', 7000)
  const world = await feedWorld(t, { ...SETTINGS, FEED_LINGER_SECONDS: '7' })
  const { market, join } = world
  const { browser, request } = await subscribed(world, 'R_1')
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  t.equal(lingering.size, 1)
  setAway(world, true)
  request.socket.terminate()
  await until(() => lingering.size === 0, 'its time does not go on')
  const impatient = await join()
  impatient.send({ ticks: 'R_1', subscribe: 1 })
  await gauge(world, 'bff_feed_subscribers', 1)
  await leave(world, impatient)
  setAway(world, false)
  tick(await market.next('ticks', 'R_1'), 7, 7, 'new')
  const back = await join()
  t.match(await back.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 7 } })
  t.equal(market.asked('ticks').length, 2)
  t.same((await back.ask({ forget_all: 'ticks' }))['forget_all'], ['new'], 'it has no other id')
})

await test('a stream that was renewed stays as long as browsers may take to come back', async (t) => {
  t.intercept(Math, 'random', { value: () => 0 })
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '60', FEED_LINGER_SECONDS: '0' })
  const { market } = world
  const { browser, request } = await subscribed(world, 'R_1')
  request.socket.terminate()
  t.same(await browser.client.closed, LOST)
  tick(await market.next('ticks', 'R_1'), 7, 7, 'new')
  // Both travel on the same connection, so a forget would be there before the second request.
  const { browser: other } = await subscribed(world, 'R_2')
  t.same(await other.rest(), [])
  const { browser: another } = await subscribed(world, 'R_3')
  t.match(await another.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 7 } })
  t.equal(market.asked('ticks').length, 4)
  t.equal(market.asked('forget').length, 0)
})

await test('what nobody waits for any more is not asked when upstream is back', async (t) => {
  const patience = new HeldTimers(t, 'setTimeout', 5000)
  const world = await feedWorld(t, SETTINGS)
  const { join } = world
  setAway(world, true)
  const [early, gone, late] = [await join(), await join(), await join()]
  early.send({ ticks: 'R_1', subscribe: 1 })
  await gauge(world, 'bff_feed_subscribers', 1)
  patience.run()
  t.same(await early.client.closed, LOST)
  gone.send({ ticks: 'R_2', subscribe: 1 })
  await gauge(world, 'bff_feed_subscribers', 1)
  await leave(world, gone)
  late.send({ ticks: 'R_3', subscribe: 1 })
  await gauge(world, 'bff_feed_subscribers', 1)
  setAway(world, false)
  tick(await world.market.next('ticks', 'R_3'), 1)
  t.match(await late.next(), { tick: { quote: 1 } })
  await subscribed(world, 'R_4')
  t.same(symbolsAfter(world, 0), ['R_3', 'R_4'])
})

await test('a stream that nobody comes back to in time is over, also if browsers have waited for it in vain since its loss', async (t) => {
  const patience = new HeldTimers(t, 'setTimeout', 5000)
  const pass = clockAhead(t)
  const world = await feedWorld(t, SETTINGS)
  const { browser, request } = await subscribed(world, 'R_1')
  setAway(world, true)
  request.socket.terminate()
  await until(() => patience.size === 1)
  pass(60_000)
  patience.run()
  t.same(await browser.client.closed, LOST)
  setAway(world, false)
  reply(await world.market.next('ticks', 'R_1'), { msg_type: 'tick', error: { code: 'RateLimit', message: '' } })
  await gauge(world, 'bff_feed_streams', 0)
})

await test('a stream is over once its browsers have left before its first price, which comes all the same', async (t) => {
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const browser = await world.join()
  const request = await world.market.askedBy(browser, { ticks: 'R_1', subscribe: 1 })
  await leave(world, browser)
  tick(request, 1, 1, 'id-1')
  t.ok(await world.market.next('forget', 'id-1'))
  await gauge(world, 'bff_feed_streams', 0)
})

await test('a stream that nobody has is over after a while, however many prices come', async (t) => {
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '1' })
  const { browser, request } = await subscribed(world, 'R_1')
  await leave(world, browser)
  let quote = 1
  await until(() => {
    tick(request, ++quote, quote, 'id-R_1', 'R_1')
    return world.market.asked('forget').length > 0
  }, 'it is forgotten')
  await gauge(world, 'bff_feed_streams', 0)
})

await test('streams are renewed as fast as upstream answers', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market } = world
  const symbols = Array.from({ length: 20 }, (_, index) => `R_${index}`)
  const requests = []
  for (const symbol of symbols) requests.push(await subscribed(world, symbol))
  const renewed = new Set<unknown>()
  market.auto = ({ ticks }) => {
    renewed.add(ticks)
    return price(2)
  }
  requests[0]?.request.socket.terminate()
  await until(() => renewed.size === symbols.length, 'all of them are back')
  t.equal(market.asked('ticks').length, 2 * symbols.length, 'each was asked for once more')
})

await test('a stream that upstream does not renew', async (t) => {
  const pass = clockAhead(t)
  const world = await feedWorld(t, { ...SETTINGS, FEED_LINGER_SECONDS: '60' })
  const { market, join, metric } = world
  const refusal = { msg_type: 'tick', error: { code: 'RateLimit', message: '' } }

  await t.test('is over if nobody has come back in time', async (t) => {
    const { browser, request } = await subscribed(world, 'R_1')
    request.socket.terminate()
    t.same(await browser.client.closed, LOST)
    const renewed = await market.next('ticks', 'R_1')
    pass(60_000)
    reply(renewed, refusal)
    await gauge(world, 'bff_feed_streams', 0)
  })

  await t.test(
    'is asked for once more if somebody has come back, and nobody gets what it was asked for before',
    async (t) => {
      const { browser, request } = await subscribed(world, 'R_2')
      request.socket.terminate()
      t.same(await browser.client.closed, LOST)
      const refused = await market.next('ticks', 'R_2')
      const back = await join()
      back.send({ ticks: 'R_2', subscribe: 1 })
      t.same(await back.rest(), [], 'no price from before the loss')
      reply(refused, refusal)
      const renewed = await market.next('ticks', 'R_2')
      tick(refused, 1, 1, 'late')
      t.ok(await market.next('forget', 'late'))
      tick(renewed, 2, 2, 'new')
      t.same(quotes(await back.rest()), [2])
      t.equal((await metric('bff_feed_refused_resubscriptions_total')).get(''), 2)
      await leave(world, back)
    },
  )

  await t.test('is over if it is in the way of another, and nobody has come back', async (t) => {
    const { browser, request } = await subscribed(world, 'R_3')
    const before = market.asked('ticks').length
    request.socket.terminate()
    t.same(await browser.client.closed, LOST)
    for (const renewed of [await market.next('ticks'), await market.next('ticks')]) {
      if (renewed.message['ticks'] === 'R_2') tick(renewed, 3, 3, 'again')
      else reply(renewed, { msg_type: 'tick', error: { code: 'AlreadySubscribed', message: '' } })
    }
    await gauge(world, 'bff_feed_streams', 1)
    await subscribed(world, 'R_4')
    const after = symbolsAfter(world, before)
    t.same(new Set(after), new Set(['R_2', 'R_3', 'R_4']))
    t.equal(after.length, 3)
  })

  await t.test(
    'tells browsers that came later only of refusals of their own requests, each of which upstream gets',
    async (t) => {
      const asked = { ticks_history: 'R_5', subscribe: 1, end: 'latest' }
      const browser = await join()
      const request = await market.serve(browser, asked, {
        msg_type: 'history',
        history: { prices: [1], times: [1] },
        subscription: { id: 'h' },
      })
      request.socket.terminate()
      t.same(await browser.client.closed, LOST)
      const renewed = await market.next('ticks_history')
      const back = [await join(), await join()]
      for (const [index, each] of back.entries()) {
        each.send({ ...asked, count: index + 1, req_id: index })
        await each.rest()
      }
      reply(renewed, {
        msg_type: 'history',
        error: { code: 'InvalidStartEnd', message: 'a start that the first has named' },
      })
      for (const [index, each] of back.entries()) {
        const own = await market.next('ticks_history')
        t.match(own.message, { count: index + 1 })
        reply(own, REFUSED)
        t.match(await each.next(), { req_id: index, ...REFUSED })
      }
      t.equal(market.asked('ticks_history').length, 4)
    },
  )
})
