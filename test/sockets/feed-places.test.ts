import { test } from 'tap'
import type { WebSocket } from 'ws'
import {
  feedWorld,
  price,
  reply,
  tick,
  type UpstreamRequest,
  served,
  refusal,
  type Message,
  type FeedBrowser,
} from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

/** Answers subscriptions to ticks as upstream does: with AlreadySubscribed where the connection has the symbol. */
function takesSymbolsOnce(): (message: Message, request: UpstreamRequest) => Message | undefined {
  const bySocket = new WeakMap<WebSocket, Set<unknown>>()
  return (message, request) => {
    const taken = bySocket.get(request.socket) ?? new Set()
    bySocket.set(request.socket, taken)
    if ('forget' in message) return served(message)
    if ('forget_all' in message) {
      taken.clear()
      return { msg_type: 'forget_all', forget_all: ['of-own'] }
    }
    const symbols = [message['ticks']].flat()
    if (symbols.some((symbol) => taken.has(symbol))) return refusal('AlreadySubscribed')
    for (const ticks of symbols) taken.add(ticks)
    for (const ticks of symbols.slice(1)) reply(request, served({ ticks }))
    return served({ ticks: symbols[0] })
  }
}

/** Says that the connection has the symbol already. */
function refuseAgain(request: UpstreamRequest): void {
  reply(request, refusal('AlreadySubscribed'))
}

function subscribe(browser: FeedBrowser, symbol: string): Promise<unknown> {
  return browser.ask({ ticks: symbol, subscribe: 1 })
}

await test('a new stream goes to an open connection with room, not to one that was lost', async (t) => {
  const world = await feedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '3',
    FEED_LINGER_SECONDS: '0',
    FEED_RECONNECT_SPREAD_SECONDS: '0',
  })
  const { market, join, upstream } = world
  market.auto = (message) => served(message)
  const [one, other] = [await join(), await join()]
  for (const symbol of ['A', 'B', 'C', 'D']) await subscribe(one, symbol)
  await subscribe(other, 'D')
  await one.ask({ forget: 'id-C' })
  await until(() => market.asked('forget').length === 1)
  upstream.onUpgrade = (_request, socket) => socket.end('HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n')
  market.asked('ticks')[0]?.socket.terminate()
  t.match(await one.client.closed, { code: 1013 })
  t.match(await subscribe(other, 'E'), { tick: { symbol: 'E' } })
})

await test('once half of the places are taken, an address starts no more streams than five browsers have', async (t) => {
  const world = await feedWorld(t, {
    TRUST_PROXY: '1',
    FEED_SUBSCRIPTIONS: '2',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '7',
    FEED_MAX_SOCKETS: '2',
  })
  world.market.auto = (message) => served(message)
  const { join: from } = world
  const SERVED = { tick: {} }
  const limited = { error: { code: 'RateLimit' } }

  const greedy = await Promise.all(Array.from({ length: 5 }, () => from('192.0.2.1')))
  for (const [index, browser] of greedy.entries()) {
    for (const symbol of [`A${index}`, `B${index}`]) t.match(await subscribe(browser, symbol), SERVED)
  }
  const late = await from('192.0.2.1')
  t.match(await subscribe(late, 'C'), limited)
  t.match(await subscribe(late, 'A1'), SERVED, 'a stream that exists')
  const other = await from('192.0.2.2')
  for (const symbol of ['D', 'E']) t.match(await subscribe(other, symbol), SERVED)
  await greedy[1]?.ask({ forget_all: 'ticks' })
  t.match(await subscribe(late, 'C'), SERVED, 'B1 is used no more')
  t.match(await subscribe(await from('192.0.2.1'), 'F'), limited, 'A1 is still used')
})

await test('a connection takes a symbol again once its stream is over', async (t) => {
  const { market, join } = await feedWorld(t, {
    FEED_MAX_SOCKETS: '1',
    FEED_LINGER_SECONDS: '0',
  })
  market.auto = (message) => ('forget' in message ? served(message) : undefined)
  const browser = await join()
  await market.serve(browser, { ticks: 'R_2', subscribe: 1 }, price(1, 'id-0', 'R_2'))
  for (const id of ['id-1', 'id-2']) {
    tick(await market.askedBy(browser, { ticks: 'R_1', subscribe: 1 }), 1, 1, id)
    t.match(await browser.next(), { tick: {}, subscription: { id } })
    t.match(await browser.ask({ forget: id }), { forget: 1 })
    await until(() => market.asked('forget').some(({ message }) => message['forget'] === id), 'its stream is over')
  }
})

await test('a stream that upstream takes for another one leaves its connection, even if that is empty then', async (t) => {
  const { market, join, server } = await feedWorld(t)
  const browser = await join()
  const request = await market.askedBy(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  reply(request, refusal('AlreadySubscribed'))
  const moved = await market.next('ticks')
  t.ok(moved.socket !== request.socket)
  tick(moved, 1)
  t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
  const lost = (): boolean => server.log.some(({ msg }) => msg === 'the feed lost its upstream socket')
  request.socket.terminate()
  await until(lost, 'the connection that it has left is lost')
  tick(moved, 2)
  t.match(await browser.next(), { req_id: 1, tick: { quote: 2 } })
})

await test('an address starts as many streams as it likes until more than half of the places are taken', async (t) => {
  const { market, join } = await feedWorld(t, {
    FEED_SUBSCRIPTIONS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '6',
    FEED_MAX_SOCKETS: '2',
  })
  market.auto = takesSymbolsOnce()
  for (let count = 1; count <= 7; count++) t.match(await subscribe(await join(), `A${count}`), { tick: {} })
  t.match(await subscribe(await join(), 'A8'), { error: { code: 'RateLimit' } })
})

await test('a stream that has moved twice may move again once upstream has taken it', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const first = await join()
  first.send({ ticks: 'R_1', subscribe: 1 })
  for (let count = 0; count < 2; count++) refuseAgain(await market.next('ticks'))
  const taken = await market.next('ticks')
  tick(taken, 1)
  t.match(await first.next(), { tick: { quote: 1 } })
  taken.socket.terminate()
  t.match(await first.client.closed, { code: 1013 })
  const renewed = await market.next('ticks')
  const second = await join()
  second.send({ ticks: 'R_1', subscribe: 1, req_id: 2 })
  t.same(await second.rest(), [])
  refuseAgain(renewed)
  tick(await market.next('ticks'), 2)
  t.match(await second.next(), { req_id: 2, tick: { quote: 2 } })
})
