import { test } from 'tap'
import { type FeedBrowser, type FeedWorld, feedWorld, LOST, reply, subscribed } from '../support/feed/world.ts'
import { Beats } from '../support/feed/beats.ts'
import { breakConnection } from '../support/feed/broken-connection.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const READ = { active_symbols: 'brief' }

/** Ends a browser, and resolves once the server knows. */
async function leave({ metric }: FeedWorld, browser: FeedBrowser): Promise<void> {
  browser.client.socket.terminate()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 0, 'it is gone')
}

/** A world without browsers, in which upstream answers pings. */
async function idleWorld(t: Parameters<typeof feedWorld>[0]): Promise<FeedWorld> {
  const world = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
  world.market.auto = ({ ping }) => (ping === undefined ? undefined : { ping: 'pong' })
  return world
}

await test('the connection of requests stays while there are browsers, and no longer', async (t) => {
  const beats = new Beats(t)
  const world = await idleWorld(t)
  const { market, join, upstream } = world
  const second = await join()
  await market.askedBy(second, READ)
  await leave(world, second)
  beats.pass(3, 0)
  await until(() => upstream.open === 0, 'nobody waits for the answer')
  const third = await join()
  third.send({ ...READ, req_id: 3 })
  reply(await market.next('active_symbols'), { active_symbols: [1] })
  t.match(await third.next(), { req_id: 3, active_symbols: [1] })

  beats.pass(3)
  await until(() => market.asked('ping').length === 1, 'there is a browser')
  await market.serve(third, { time: 1 }, { time: 1 })
  await leave(world, third)
  t.equal(upstream.open, 1)
  beats.pass(3)
  await until(() => upstream.open === 0, 'nobody needs it')
  const fourth = await join()
  reply(await market.askedBy(fourth, READ), { active_symbols: [2] })
  t.match(await fourth.next(), { active_symbols: [2] })
})

await test('an answer that was lost with its connection is asked for again by who comes next', async (t) => {
  const world = await idleWorld(t)
  const { market, join } = world
  const first = await join()
  const lost = await market.askedBy(first, READ)
  const connect = await breakConnection(world, lost.socket)
  connect()
  const second = await join()
  reply(await market.askedBy(second, READ), { active_symbols: [] })
  t.match(await second.next(), { active_symbols: [] })
})

await test('a server that stops ends the connection of requests, also while it is tried again', async (t) => {
  t.intercept(Math, 'random', { value: () => 0 })
  for (const isLost of [false, true]) {
    const pauses = new HeldTimers(t, 'setTimeout', 100)
    const { market, join, upstream, server } = await idleWorld(t)
    const browser = await join()
    const request = await market.serve(browser, READ, { active_symbols: [] })
    if (isLost) {
      request.socket.terminate()
      await until(() => pauses.size === 1, 'it will be tried again')
    }
    await server.close()
    await until(() => upstream.open === 0)
    t.equal(pauses.size, 0)
  }
})

await test('while upstream stays away, streams to which nobody comes back are over, and it is not tried for them', async (t) => {
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0', FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, metric, upstream } = world
  const { browser, request } = await subscribed(world, 'R_1')
  upstream.onUpgrade = (_request, socket) => void socket.destroy()
  request.socket.terminate()
  t.same(await browser.client.closed, LOST)
  await until(async () => (await metric('bff_feed_streams')).get('') === 0, 'its place is free')
  await until(async () => (await metric('bff_feed_retrying_sockets')).get('') === 0, 'nothing is tried')
  upstream.onUpgrade = undefined
  await subscribed(world, 'R_2')
  t.same(
    market.asked('ticks').map(({ message }) => message['ticks']),
    ['R_1', 'R_2'],
  )
})
