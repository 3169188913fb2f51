import { test, type Test } from 'tap'
import { type FeedBrowser, type FeedWorld, feedWorld, refusal, served } from '../support/feed/world.ts'

const SERVED = { tick: {} }
const LIMITED = { error: { code: 'RateLimit' } }
const REFUSED = { error: { code: 'AlreadySubscribed' } }

/** A world whose upstream takes everything but the symbol REFUSED, which it says it has already. */
async function crowdedWorld(t: Test, settings: Record<string, string>): Promise<FeedWorld> {
  const world = await feedWorld(t, { FEED_MAX_OWN_SOCKETS: '0', ...settings })
  world.market.auto = (message) => (message['ticks'] === 'REFUSED' ? refusal('AlreadySubscribed') : served(message))
  return world
}

function subscribe(browser: FeedBrowser, ticks: string): Promise<unknown> {
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

await test('a stream without subscribers stays where its end would make no room', async (t) => {
  const { join, market } = await crowdedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '1',
    FEED_LINGER_SECONDS: '3600',
  })
  const browser = await join()
  t.match(await subscribe(browser, 'A'), SERVED)
  t.match(await browser.ask({ forget: 'id-A' }), { forget: 1 })
  t.match(await subscribe(browser, 'REFUSED'), REFUSED, 'there is no other connection')
  t.match(await subscribe(browser, 'A'), SERVED)
  t.equal(market.asked('ticks').filter(({ message }) => message['ticks'] === 'A').length, 1)
  t.match(await subscribe(browser, 'B'), SERVED)
  t.same(market.asked('forget'), [])
})
