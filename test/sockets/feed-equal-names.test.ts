import { test } from 'tap'
import type { WebSocket } from 'ws'
import {
  type FeedBrowser,
  type FeedWorld,
  feedWorld,
  type Message,
  price,
  reply,
  served,
  tick,
  type UpstreamRequest,
  history,
} from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

const TICKS = { ticks: 'R_1', subscribe: 1, req_id: 1 }
const HISTORY = { ticks_history: 'R_1', end: 'latest', style: 'ticks', subscribe: 1, req_id: 2 }
const REFUSED = { error: { code: 'AlreadySubscribed', message: 'of upstream' } }
const LIMITED = { error: { code: 'RateLimit' } }

/** Starts every stream, and gives it an id that names its operation. */
function serve(message: Message): Message {
  if ('ticks' in message) return price(1, 'of-ticks', String(message['ticks']))
  return 'ticks_history' in message ? { ...history(1), subscription: { id: 'of-history' } } : served(message)
}

/** The same, but a connection takes a symbol once, whatever request names it. */
function serveSymbolsOnce(): (message: Message, request: UpstreamRequest) => Message {
  const bySocket = new WeakMap<WebSocket, Map<unknown, unknown>>()
  return (message, { socket }) => {
    const subjects = bySocket.get(socket) ?? new Map<unknown, unknown>()
    bySocket.set(socket, subjects)
    if ('forget' in message) subjects.delete(message['forget'])
    const symbol = message['ticks'] ?? message['ticks_history']
    if (symbol === undefined) return serve(message)
    if ([...subjects.values()].includes(symbol)) return { msg_type: 'tick', ...REFUSED }
    subjects.set('ticks' in message ? 'of-ticks' : 'of-history', symbol)
    return serve(message)
  }
}

/** Subscribes one browser to the ticks of a symbol and another one to a history of its ticks. */
async function both(
  { join }: FeedWorld,
  symbol = 'R_1',
): Promise<{ readonly answers: Message[]; ticker: FeedBrowser }> {
  const [ticker, charter] = [await join(), await join()]
  const first = await ticker.ask({ ...TICKS, ticks: symbol })
  return { answers: [first, await charter.ask({ ...HISTORY, ticks_history: symbol })], ticker }
}

await test('the ticks of a symbol and a history of its ticks share a connection, where upstream lets them', async (t) => {
  const world = await feedWorld(t, { FEED_MAX_SOCKETS: '1' })
  const { market, upstream, join } = world
  market.auto = serve
  const { answers } = await both(world)
  t.match(answers[0], { req_id: 1, tick: {}, subscription: { id: 'of-ticks' } })
  t.match(answers[1], { req_id: 2, history: {}, subscription: { id: 'of-history' } })
  t.equal(upstream.open, 1)

  const browser = await join()
  t.match(await browser.ask(TICKS), { tick: {} })
  t.match(await browser.ask(HISTORY), { history: {} })
  const [ofTicks] = market.asked('ticks')
  const [ofHistory] = market.asked('ticks_history')
  if (ofTicks === undefined || ofHistory === undefined) throw new Error('upstream was not asked')
  t.match(await browser.ask({ forget: 'of-ticks', req_id: 3 }), { req_id: 3, forget: 1 })
  tick(ofTicks, 2, 2, 'of-ticks', 'R_1')
  tick(ofHistory, 3, 3, 'of-history', 'R_1')
  t.match(await browser.next(), { req_id: 2, tick: { quote: 3 } }, 'the other stream goes on')
})

await test('where upstream takes a symbol once on a connection, it refuses only the first stream', async (t) => {
  const world = await feedWorld(t)
  const { market, upstream } = world
  market.auto = serveSymbolsOnce()
  for (const symbol of ['R_1', 'R_2', 'R_3']) {
    t.match((await both(world, symbol)).answers, [{ tick: {} }, { history: {} }], symbol)
  }
  t.equal(market.asked('ticks_history').length, 4)
  t.equal(upstream.open, 2)
})

await test('a stream that upstream refused for its name takes the place of the other one once nobody watches that', async (t) => {
  const world = await feedWorld(t, { FEED_MAX_SOCKETS: '1', FEED_LINGER_SECONDS: '600' })
  const { market, join, metric } = world
  market.auto = serveSymbolsOnce()
  const { answers, ticker } = await both(world)
  t.match(answers[1], { req_id: 2, ...REFUSED }, 'there is no other connection')
  t.match(await (await join()).ask(HISTORY), { req_id: 2, ...LIMITED }, 'it is known by now')
  t.equal(market.asked('ticks_history').length, 1)
  ticker.client.socket.close()
  await until(async () => (await metric('bff_feed_subscribers')).get('') === 0, 'the ticks have no subscriber')
  t.match(await (await join()).ask(HISTORY), { req_id: 2, history: {} })
  t.equal(market.asked('forget').length, 1, 'the ticks have made room')
})

await test('a stream without subscribers, for which upstream refuses another, makes room for that', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_MAX_SOCKETS: '1', FEED_LINGER_SECONDS: '600' })
  market.auto = serveSymbolsOnce()
  const ticker = await join()
  await ticker.ask(TICKS)
  ticker.client.socket.close()
  await until(async () => (await metric('bff_feed_subscribers')).get('') === 0, 'the ticks have no subscriber')
  t.match(await (await join()).ask(HISTORY), { req_id: 2, history: {} })
})

await test('a history that no connection takes any more after a refusal is answered, and not forgotten', async (t) => {
  const world = await feedWorld(t, { FEED_MAX_SOCKETS: '1' })
  const { market, join } = world
  const serveOnce = serveSymbolsOnce()
  market.auto = (message, request) => (message['ticks_history'] === 'R_1' ? undefined : serveOnce(message, request))
  const [ticker, first, second] = [await join(), await join(), await join()]
  await ticker.ask(TICKS)
  const asked = await market.askedBy(first, { ...HISTORY, count: 1 })
  second.send({ ...HISTORY, count: 2 })
  await second.rest()
  t.match((await both(world, 'R_2')).answers[1], REFUSED, 'equal names need connections of their own from now on')
  reply(asked, { msg_type: 'history', error: { code: 'InputValidationFailed' } })
  t.match(await first.next(), { req_id: 2, error: { code: 'InputValidationFailed' } })
  t.match(await second.next(), { req_id: 2, ...LIMITED }, 'the ticks are in the way of its own request')
  t.match(await second.ask(HISTORY), { req_id: 2, ...LIMITED }, 'it may ask again')
  t.equal(market.asked('ticks_history').length, 2)
})

await test('a browser whose stream moves to a connection that does not open is closed with 1013', async (t) => {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, upstream, join } = world
  market.auto = serveSymbolsOnce()
  const [ticker, charter] = [await join(), await join()]
  await ticker.ask(TICKS)
  upstream.onUpgrade = (_request, socket) => void socket.destroy()
  charter.send(HISTORY)
  t.same(await charter.client.closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await ticker.rest(), [], 'the other one stays')
})

await test('a full pool gives up the stream that was unused longest, as long as upstream has refused none for its name', async (t) => {
  const world = await feedWorld(t, {
    FEED_MAX_SOCKETS: '1',
    FEED_SUBSCRIPTIONS: '2',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_LINGER_SECONDS: '600',
  })
  const { market, join, metric } = world
  market.auto = serve
  const [stays, leaves] = [await join(), await join()]
  await stays.ask(TICKS)
  await leaves.ask({ ...TICKS, ticks: 'R_2' })
  leaves.client.socket.close()
  await until(async () => (await metric('bff_feed_subscribers')).get('') === 1, 'R_2 has no subscriber')
  t.match(await stays.ask(HISTORY), { req_id: 2, history: {} })
})
