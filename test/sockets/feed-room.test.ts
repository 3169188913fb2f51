import { test, type Test } from 'tap'
import { feedWorld, reply, tick, type FeedBrowser, type FeedWorld } from '../support/feed-world.ts'
import { until } from '../support/until.ts'

const SERVED = { tick: {} }
const LIMITED = { error: { code: 'RateLimit' } }
const REFUSED = { error: { code: 'AlreadySubscribed' } }

/** A world whose upstream takes everything but the symbol REFUSED, which it says it has already. */
async function crowdedWorld(t: Test, settings: Record<string, string>): Promise<FeedWorld> {
  const world = await feedWorld(t, { FEED_MAX_OWN_SOCKETS: '0', ...settings })
  world.market.auto = (request) => {
    const { ticks } = request.message
    if (ticks === undefined) reply(request, { forget: 1 })
    else if (ticks === 'REFUSED')
      reply(request, { msg_type: 'tick', error: { code: 'AlreadySubscribed', message: '' } })
    else for (const symbol of [ticks].flat() as string[]) tick(request, 1, 1, `id-${symbol}`, symbol)
    return true
  }
  return world
}

function subscribe(browser: FeedBrowser, ticks: string | string[]): Promise<unknown> {
  return browser.ask({ ticks, subscribe: 1 })
}

await test('a subscription that upstream refuses as a second one leaves its own place, and no other', async (t) => {
  const { join } = await crowdedWorld(t, { FEED_SUBSCRIPTIONS_PER_SOCKET: '2', FEED_MAX_SOCKETS: '1' })
  const browser = await join()
  t.match(await subscribe(browser, 'A'), SERVED)
  t.match(await subscribe(browser, 'REFUSED'), REFUSED)
  t.match(await subscribe(await join(), 'C'), SERVED)
  t.match(await subscribe(await join(), 'D'), LIMITED)
})

await test('a symbol array that is longer than a connection carries has one of its own', async (t) => {
  const { join } = await crowdedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '2',
    FEED_LINGER_SECONDS: '3600',
  })
  const browser = await join()
  t.match(await subscribe(browser, ['A', 'B', 'C']), SERVED)
  await browser.rest()
  t.match(await subscribe(await join(), ['D', 'E']), LIMITED, 'half of the connections are for arrays')
  t.match(await browser.ask({ forget_all: 'ticks' }), { forget_all: ['id-A', 'id-B', 'id-C'] })
  t.match(await subscribe(await join(), ['F', 'G', 'H']), SERVED, 'nobody had it any more')
})

await test('an empty connection takes no symbol array once half of the connections carry arrays', async (t) => {
  const { join, upstream, metric } = await crowdedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '2',
    FEED_LINGER_SECONDS: '0',
  })
  t.match(await subscribe(await join(), ['A', 'B']), SERVED)
  const browser = await join()
  t.match(await subscribe(browser, 'C'), SERVED)
  t.equal(upstream.open, 2)
  t.match(await browser.ask({ forget: 'id-C' }), { forget: 1 })
  await until(async () => (await metric('bff_feed_streams')).get('') === 1, 'the stream of C is over')
  t.match(await subscribe(browser, ['D', 'E']), LIMITED)
  t.match(await subscribe(browser, 'D'), SERVED)
})

await test('a stream without subscribers stays where its end would make no room', async (t) => {
  const { join, market } = await crowdedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '1',
    FEED_LINGER_SECONDS: '3600',
  })
  const browser = await join()
  t.match(await subscribe(browser, 'A'), SERVED)
  t.match(await browser.ask({ forget: 'id-A' }), { forget: 1 })
  t.match(await subscribe(browser, ['B', 'C']), LIMITED, 'there is no connection for arrays')
  t.match(await subscribe(browser, 'REFUSED'), REFUSED, 'there is no other connection')
  t.match(await subscribe(browser, 'A'), SERVED)
  t.equal(market.asked('ticks').filter(({ message }) => message['ticks'] === 'A').length, 1)
  t.match(await subscribe(browser, 'B'), SERVED)
  t.same(market.asked('forget'), [])
})

await test('a symbol array without subscribers stays where another one has a symbol that is asked for', async (t) => {
  const { join, market } = await crowdedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '4',
    FEED_MAX_SOCKETS: '2',
    FEED_LINGER_SECONDS: '3600',
  })
  const browser = await join()
  t.match(await subscribe(await join(), ['A', 'B']), SERVED)
  t.match(await subscribe(browser, ['C', 'D']), SERVED)
  await browser.rest()
  await browser.ask({ forget_all: 'ticks' })
  t.match(await subscribe(browser, ['A', 'E']), LIMITED)
  t.match(await subscribe(browser, ['C', 'D']), SERVED)
  t.equal(market.asked('ticks').length, 2)
  t.match(await subscribe(await join(), ['F', 'G']), LIMITED)
  t.same(market.asked('forget'), [])
})
