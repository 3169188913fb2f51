import { test } from 'tap'
import type { WebSocket } from 'ws'
import {
  type FeedBrowser,
  type FeedWorld,
  feedWorld,
  type Message,
  price,
  served,
  tick,
  type UpstreamRequest,
  history,
} from '../support/feed/world.ts'
import { exactly } from '../support/exactly.ts'

const TICKS = { ticks: 'R_1', subscribe: 1, req_id: 1 }
const HISTORY = { ticks_history: 'R_1', end: 'latest', style: 'ticks', subscribe: 1, req_id: 2 }
const REFUSED = { error: { code: 'AlreadySubscribed', message: 'of upstream' } }

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

await test('where upstream takes a symbol once on a connection, a stream that it refuses moves to another one', async (t) => {
  const world = await feedWorld(t)
  const { market, upstream } = world
  market.auto = serveSymbolsOnce()
  for (const symbol of ['R_1', 'R_2', 'R_3']) {
    t.match((await both(world, symbol)).answers, exactly({ tick: {} }, { history: {} }), symbol)
  }
  t.equal(market.asked('ticks_history').length, 6)
  t.equal(upstream.open, 2)
})

await test('a browser is told of the refusal if there is no other connection', async (t) => {
  const world = await feedWorld(t, { FEED_MAX_SOCKETS: '1' })
  const { market } = world
  market.auto = serveSymbolsOnce()
  const { answers } = await both(world)
  t.match(answers[1], { req_id: 2, ...REFUSED })
  t.equal(market.asked('ticks_history').length, 1)
})

await test('a browser whose stream moves to a connection that does not open is closed with 1013', async (t) => {
  const { market, upstream, join } = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  market.auto = serveSymbolsOnce()
  const [ticker, charter] = [await join(), await join()]
  await ticker.ask(TICKS)
  upstream.onUpgrade = (_request, socket) => void socket.destroy()
  charter.send(HISTORY)
  t.same(await charter.client.closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await ticker.rest(), [], 'the other one stays')
})
