import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { type FeedWorld, feedWorld, price, tick } from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** How long a stream that nobody wants waits for upstream's first message. */
const UNANSWERED_MS = 60_000
/** How long a forget_all waits for the first answers of subscriptions. */
const FORGOTTEN_MS = 5000
const TICKS = { ticks: 'R_1', subscribe: 1 }

const streams = async ({ metric }: FeedWorld): Promise<unknown> => (await metric('bff_feed_streams')).get('')

/** A browser subscribes to R_1, which upstream does not answer, and leaves. */
async function abandoned(world: FeedWorld) {
  const { market, join, metric } = world
  const browser = await join()
  const request = await market.askedBy(browser, TICKS)
  browser.client.socket.close()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 0, 'the browser is gone')
  return request
}

await test('a stream that upstream never starts gives its place back when nobody wants it', async (t) => {
  const world = await feedWorld(t)
  const { market, join, metric } = world
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const request = await abandoned(world)
  t.equal(await streams(world), 1, 'upstream may still answer')
  held.run()
  t.equal(await streams(world), 0)
  t.equal((await metric('bff_feed_taken_places')).get(''), 0)

  const browser = await join()
  tick(await market.askedBy(browser, TICKS), 2, 2, 'new')
  t.match(await browser.next(), { tick: { quote: 2 } }, 'upstream is asked again')
  tick(request, 1, 1, 'late')
  t.ok(await market.next('forget', 'late'), 'a late start is forgotten')
  t.same(await browser.rest(), [])
})

await test('whoever wants a stream that upstream has not started yet waits with it', async (t) => {
  const world = await feedWorld(t)
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const request = await abandoned(world)
  const browser = await world.join()
  browser.send({ ...TICKS, req_id: 2 })
  t.same(await browser.rest(), [])
  t.equal(held.size, 0)
  tick(request, 1)
  t.match(await browser.next(), { req_id: 2, tick: { quote: 1 } })
  t.equal(await streams(world), 1)
})

await test('a stream that upstream does not renew gives its place back when its browsers do not return', async (t) => {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, join } = world
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const browser = await join()
  const request = await market.serve(browser, TICKS, price(1))
  request.socket.terminate()
  t.match(await browser.client.closed, { code: 1013 })
  await market.next('ticks')
  t.equal(await streams(world), 1)
  held.run()
  t.equal(await streams(world), 0)
})

await test('forget_all is answered although a symbol is silent, whose subscription ends with its first price', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  await market.serve(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(1, 'id-1'))
  const silent = await market.askedBy(browser, { ticks: 'R_2', subscribe: 1, req_id: 2 })
  const held = new HeldTimers(t, 'setTimeout', FORGOTTEN_MS)
  browser.send({ ticks: 'R_2', subscribe: 1, req_id: 21 })
  browser.send({ forget_all: 'ticks', req_id: 3 })
  browser.send({ ping: 1, req_id: 4 })
  while (held.size === 0) await delay(1)
  held.run()
  t.match(await browser.next(), { req_id: 3, forget_all: ['id-1'] })
  t.match(await browser.next(), { req_id: 4, ping: 'pong' })
  t.match(await browser.ask({ forget_all: 'ticks', req_id: 5 }), { req_id: 5, forget_all: [] }, 'it waits only once')
  tick(silent, 1, 1, 'id-2', 'R_2')
  t.match(await browser.next(), { req_id: 2, tick: { symbol: 'R_2' } })
  t.match(await browser.next(), { req_id: 21, error: { code: 'AlreadySubscribed' } })
  tick(silent, 2, 2, 'id-2', 'R_2')
  t.same(await browser.rest(), [])
  t.match(await browser.ask({ ticks: 'R_2', subscribe: 1, req_id: 6 }), { req_id: 6, tick: { symbol: 'R_2' } })
})
