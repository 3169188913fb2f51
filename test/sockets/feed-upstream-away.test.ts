import {
  feedWorld,
  type FeedBrowser,
  LOST,
  reply,
  subscribed,
  tick,
  type UpstreamRequest,
} from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const SETTINGS = { FEED_RECONNECT_SPREAD_SECONDS: '0', FEED_LINGER_SECONDS: '1' }

/** Cuts a connection of the feed's as a broken network does. */
function reset({ socket }: UpstreamRequest): void {
  socket.terminate()
}

await sideBySide({
  'a browser that waits for a stream that is still to be renewed is closed if upstream is lost again': async (t) => {
    const world = await feedWorld(t, { ...SETTINGS, FEED_LINGER_SECONDS: '60' })
    const { upstream, market, join, metric } = world
    const { browser, request } = await subscribed(world, 'R_1')
    reset(request)
    t.same(await browser.client.closed, LOST)
    const renewed = await market.next('ticks', 'R_1')
    reply(renewed, { msg_type: 'tick', error: { code: 'RateLimit', message: '' } })
    const refused = async (): Promise<unknown> => (await metric('bff_feed_refused_resubscriptions_total')).get('')
    await until(async () => (await refused()) === 1)
    const back = await join()
    back.send({ ticks: 'R_1', subscribe: 1 })
    await back.rest()
    upstream.onUpgrade = (_request, socket) => void socket.destroy()
    reset(renewed)
    t.same(await back.client.closed, LOST)
  },

  'a browser that comes while upstream is away waits for 5 seconds at most': async (t) => {
    const { upstream, market, join } = await feedWorld(t, SETTINGS)
    upstream.onUpgrade = (_request, socket) => void socket.destroy()
    const early = await join()
    early.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
    early.send({ time: 1, req_id: 2 })
    const idle = await join()
    await idle.ask({ ping: 1 })
    t.same(await early.client.closed, LOST)
    // Nothing was lost for those who come now: upstream is tried again, at the latest after four seconds, before their time is over.
    upstream.onUpgrade = undefined
    const come = async (): Promise<FeedBrowser> => {
      const browser = await join()
      browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
      browser.send({ time: 1, req_id: 2 })
      return browser
    }
    let late = await come()
    // A machine that stands still for the second that is left lets that time pass.
    const asked = until(() => market.asked('ticks').length > 0, 'upstream is tried again')
    while ((await Promise.race([late.client.closed, asked])) !== undefined) late = await come()
    const request = await market.next('ticks', 'R_1')
    tick(request, 1)
    t.match(await late.next(), { req_id: 1, tick: { quote: 1 } })
    reply(await market.next('time'), { time: 1 })
    t.match(await late.next(), { req_id: 2, time: 1 })
    await idle.ask({ ping: 1 })
  },

  'a browser that waits for a stream alone is closed if upstream does not come back': async (t) => {
    const { upstream, join } = await feedWorld(t, SETTINGS)
    upstream.onUpgrade = (_request, socket) => void socket.destroy()
    const browser = await join()
    browser.send({ ticks: 'R_1', subscribe: 1 })
    t.same(await browser.client.closed, LOST)
  },

  'an upstream that accepts connections only to close them is asked less and less often': async (t) => {
    const world = await feedWorld(t, SETTINGS)
    const { upstream, metric } = world
    const { browser, request } = await subscribed(world, 'R_1')
    upstream.onSocket = (socket) => void socket.close(1013)
    const before = upstream.upgrades.length
    reset(request)
    t.same(await browser.client.closed, LOST)
    await until(async () => (await metric('bff_feed_streams')).get('') === 0, 'nobody comes back')
    const again = upstream.upgrades.length - before
    t.ok(again > 2 && again < 12, `${again} connections`)
  },

  'upstream is left alone when nobody comes back for a stream, though it takes its request each time and closes':
    async (t) => {
      const world = await feedWorld(t, SETTINGS)
      const { upstream, metric } = world
      const { browser, request } = await subscribed(world, 'R_1')
      let asked = 0
      upstream.onSocket = (socket) =>
        void socket.once('message', () => {
          asked++
          socket.terminate()
        })
      reset(request)
      t.same(await browser.client.closed, LOST)
      await until(async () => asked > 1 && (await metric('bff_feed_streams')).get('') === 0, 'its place is free')
    },
})
