import { test, type Test } from 'tap'
import { CacheQuota } from '../../src/sockets/feed/streams/shared-answer.ts'
import {
  type FeedWorld,
  feedWorld,
  history,
  LOST,
  type Message,
  OF_NOBODY,
  price,
  quotes,
  reply,
  tick,
} from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** All browsers that have missed something are closed in the middle of it, and nothing else takes so long. */
const SPREAD_SECONDS = 26

const asked = (count: number): Message => ({ ticks_history: 'R_1', subscribe: 1, end: 'latest', req_id: count, count })

/** A world whose browsers are not closed after a loss before the test says so. */
async function lossWorld(t: Test) {
  t.intercept(Math, 'random', { value: () => 0.5 })
  const closings = new HeldTimers(t, 'setTimeout', (SPREAD_SECONDS * 1000) / 2)
  return { world: await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: String(SPREAD_SECONDS) }), closings }
}

/** Waits until a connection of this kind was lost. */
function lost({ server }: FeedWorld, kind: 'stream' | 'request', count = 1): Promise<void> {
  return until(() => {
    const lines = server.log.filter(({ msg }) => msg === 'the feed lost its upstream socket')
    return lines.filter((line) => line['kind'] === kind).length === count
  }, `the connection of ${kind}s is lost`)
}

async function subscribers({ metric }: FeedWorld): Promise<unknown> {
  return (await metric('bff_feed_subscribers')).get('')
}

await test('a browser that may have missed a price of a stream gets no later one', async (t) => {
  const { world, closings } = await lossWorld(t)
  const { market, join } = world
  const [listed, first, ahead, waits] = [await join(), await join(), await join(), await join()]
  await market.serve(listed, { ticks: 'R_2', subscribe: 1 }, price(1, 'old', 'R_2'))
  const request = await market.serve(first, asked(1), { ...history(100), subscription: { id: 'h' } })
  await market.serve(ahead, asked(2), history(110))
  const fetch = await market.askedBy(waits, asked(3))
  request.socket.terminate()
  await lost(world, 'stream')
  t.equal(await subscribers(world), 0)

  const renewed = await market.next('ticks_history')
  const [next, other] = [await join(), await join()]
  next.send(asked(1))
  await next.rest()
  reply(renewed, { ...history(105), subscription: { id: 'new' } })
  t.match(await next.next(), { ...history(105), subscription: { id: 'new' } })
  const prices = await market.next('ticks', 'R_2')
  tick(prices, 2, 2, 'new', 'R_2')
  t.match(await other.ask({ ticks: 'R_2', subscribe: 1 }), { tick: { quote: 2 } })
  reply(fetch, history(100))
  for (const epoch of [109, 110, 111]) tick(renewed, epoch, epoch, 'new')
  tick(prices, 3, 3, 'new', 'R_2')
  t.same(quotes(await next.rest()), [109, 110, 111])
  t.same(quotes(await other.rest()), [3])
  for (const browser of [listed, first, ahead, waits]) t.same(await browser.rest(OF_NOBODY), [])

  t.equal(closings.size, 4)
  closings.run()
  for (const browser of [listed, first, ahead, waits]) t.same(await browser.client.closed, LOST)
  t.equal(await subscribers(world), 2, 'those who came later')
})

await test('a history from before a loss is for nobody who comes after it', async (t) => {
  const { world } = await lossWorld(t)
  t.intercept(CacheQuota.prototype, 'keep', { value: () => true })
  const { market, join } = world
  const [first, second, third, fourth] = [await join(), await join(), await join(), await join()]
  const request = await market.serve(first, asked(1), { ...history(100), subscription: { id: 'h' } })
  const late = await market.askedBy(second, asked(2))
  request.socket.terminate()
  await lost(world, 'stream')
  reply(await market.next('ticks_history'), { ...history(105), subscription: { id: 'new' } })
  const fresh = await market.askedBy(third, asked(2))
  reply(fresh, history(105))
  reply(late, history(100))
  t.match(await third.next(), history(105))
  await market.serve(third, { time: 1 }, { time: 1 })
  t.match(await fourth.ask(asked(2)), history(105), 'the one that was fetched after the loss')
  t.equal(market.asked('ticks_history').length, 4)
})

await test('a browser that waits for a stream when upstream is lost again gets no history', async (t) => {
  const { world, closings } = await lossWorld(t)
  const { market, join } = world
  const [first, second, third] = [await join(), await join(), await join()]
  const request = await market.serve(first, asked(1), { ...history(100), subscription: { id: 'h' } })
  request.socket.terminate()
  await lost(world, 'stream')
  const again = await market.next('ticks_history')
  second.send(asked(1))
  await second.rest()
  again.socket.terminate()
  await lost(world, 'stream', 2)
  const renewed = await market.next('ticks_history')
  third.send(asked(1))
  await third.rest()
  reply(renewed, { ...history(105), subscription: { id: 'new' } })
  tick(renewed, 106, 106, 'new')
  t.match(await third.next(), history(105))
  t.same(quotes(await third.rest()), [106])
  for (const browser of [first, second]) t.same(await browser.rest(OF_NOBODY), [])
  closings.run()
  for (const browser of [first, second]) t.same(await browser.client.closed, LOST)
})

await test('a browser whose history was lost has no stream until it is closed', async (t) => {
  const { world, closings } = await lossWorld(t)
  const { market, join } = world
  const [first, second] = [await join(), await join()]
  const request = await market.serve(first, asked(1), { ...history(100), subscription: { id: 'h' } })
  const fetch = await market.askedBy(second, asked(2))
  fetch.socket.terminate()
  await lost(world, 'request')
  t.equal(await subscribers(world), 1)
  tick(request, 101, 101, 'h')
  t.same(quotes(await first.rest()), [101])
  t.same(await second.rest(OF_NOBODY), [])
  t.same((await second.ask({ forget_all: 'ticks' }))['forget_all'], [])
  await until(() => closings.size === 1, 'the connection is back')
  closings.run()
  t.same(await second.client.closed, LOST)
})
