import type { Test } from 'tap'
import { feedWorld, tick, type FeedWorld } from '../feed/world.ts'
import { around, scrape, type Scenario } from './scrapes.ts'
import { until } from '../time/until.ts'

/** Browsers have as many streams and own sockets as they may, and one of them does not read. */
export async function narrowFeedScenario(t: Test): Promise<Scenario> {
  const world = await feedWorld(t, {
    FEED_SUBSCRIPTIONS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '1',
    FEED_MAX_SOCKETS: '1',
    FEED_MAX_OWN_SOCKETS: '1',
    FEED_CONFLATE_BYTES: '1024',
  })
  const { browser, request } = await subscribed(world)
  const { market, server } = world
  return around(server, 'the feed is full, and a browser slow', ['BffFeedNearLimit', 'BffFeedConflating'], async () => {
    browser.send({ proposal: 1 })
    await market.next('proposal')
    browser.client.socket.pause()
    const symbol = 'x'.repeat(10_000)
    for (let quote = 2; quote < 4000; quote++) tick(request, quote, quote, 'sub-1', symbol)
    await until(
      async () => /^bff_feed_conflated_messages_total [1-9]\d{3}/m.test(await scrape(server)),
      'conflated messages',
    )
  })
}

/** Upstream ends the feed's socket again and again. */
export async function brokenFeedScenario(t: Test): Promise<Scenario> {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, server } = world
  await subscribed(world)
  return around(server, 'upstream ends the shared socket again and again', ['BffFeedUnstable'], async () => {
    for (let losses = 1; losses < 6; losses++) {
      market.sockets.at(-1)?.terminate()
      tick(await market.next('ticks'), losses)
    }
  })
}

/** Upstream is gone. */
export async function lostFeedScenario(t: Test): Promise<Scenario> {
  const world = await feedWorld(t)
  const { server, upstream } = world
  await subscribed(world)
  return around(server, 'the feed has lost upstream', ['BffFeedDown'], async () => {
    await upstream.close()
    await until(async () => /^bff_feed_retrying_sockets [1-9]/m.test(await scrape(server)), 'the feed tries again')
  })
}

/** A browser uses the public socket for proposals alone, so the feed needs no upstream socket. */
export async function unusedFeedScenario(t: Test): Promise<Scenario> {
  const { market, join, server } = await feedWorld(t)
  return around(server, 'browsers ask for nothing that is shared', [], async () => {
    const browser = await join()
    browser.send({ proposal: 1 })
    await market.next('proposal')
  })
}

/** Browsers watch so many symbols that their streams take most of the places. */
export async function arraysScenario(t: Test): Promise<Scenario> {
  const { market, join, server } = await feedWorld(t, {
    FEED_SUBSCRIPTIONS: '5',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '5',
    FEED_MAX_SOCKETS: '2',
  })
  return around(server, 'streams take nearly all places', ['BffFeedNearLimit'], async () => {
    for (const ticks of [['A', 'B', 'C', 'D', 'E'], 'F', 'G', 'H', 'I']) (await join()).send({ ticks, subscribe: 1 })
    await market.next('ticks', 'I')
  })
}

/** A browser with a stream. */
async function subscribed({ market, join }: FeedWorld) {
  const browser = await join()
  browser.send({ ticks: 'R_100', subscribe: 1 })
  const request = await market.next('ticks')
  tick(request, 1)
  await browser.next()
  return { browser, request }
}
