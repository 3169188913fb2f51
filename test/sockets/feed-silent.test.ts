import { test, type Test } from 'tap'
import { openLink } from '../support/feed/open-link.ts'
import {
  type FeedBrowser,
  feedWorld,
  LOST,
  OF_NOBODY,
  quotes,
  reply,
  subscribed,
  tick,
  type UpstreamRequest,
} from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** The seconds of the connections that the feed opens from now on pass when a test says so. */
function seconds(t: Test): (count: number) => void {
  const timers = new HeldTimers(t, 'setInterval', 1000)
  return (count) => {
    for (let second = 0; second < count; second++) timers.run()
  }
}

/** Has upstream read nothing more, and so say nothing. */
function freeze({ socket }: UpstreamRequest): void {
  socket.pause()
}

/** Sends a ping whose answer is told from others by its `req_id`. */
function ping(browser: FeedBrowser, reqId: number): void {
  browser.send({ ping: 1, req_id: reqId })
}

/** Whether a browser has got the answer to a ping. */
function hasPong({ client }: FeedBrowser, reqId: number): boolean {
  return client.received.some(({ data }) => data.toString().includes(`"req_id":${reqId}`))
}

await test('a connection of the feed on which something is expected asks a silent upstream, and is lost without an answer', async (t) => {
  const pass = seconds(t)
  const { upstream, link, told, logged } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  const pings: number[] = []
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Record<string, number>
    if (message['ping'] !== undefined) pings.push(message['req_id'] ?? 0)
  })
  await until(() => link.isOpen)
  pass(60)
  t.equal(link.isOpen, true, 'nothing is expected')
  const sender = { received: () => told.push('received'), lost: () => told.push('sender lost') }
  const reqId = link.send((id) => `{"ticks":"R_1","subscribe":1,"req_id":${id}}`, sender)
  pass(5)
  t.equal(link.isSilent, false)
  socket.send(`{"msg_type":"tick","req_id":${reqId}}`)
  await until(() => told.includes('received'))
  pass(5)
  t.equal(link.isSilent, false, 'a message is a sign of life')
  pass(1)
  t.equal(link.isSilent, true)
  await until(() => pings.length === 1, 'it asks')
  pass(9)
  socket.send(`{"msg_type":"ping","ping":"pong","req_id":${String(pings[0])}}`)
  await until(() => !link.isSilent, 'it is heard')
  pass(15)
  await until(() => pings.length === 2, 'it asks again')
  t.equal(link.isOpen, true)
  let isOver = false
  link.afterSilence(() => (isOver = told.includes('sender lost')))
  pass(1)
  t.equal(link.isOpen, false)
  t.equal(isOver, true, 'who waited hears of it after the senders')
  t.same(told, ['opened', 'received', 'sender lost', 'lost'])
  t.ok(logged.includes('the feed lost its upstream socket'))
})

await test('an answer to a ping of a silent moment may come after the next beat, not after the one that follows', async (t) => {
  const beats = new HeldTimers(t, 'setInterval', 10_000)
  const beat = (count: number): void => {
    for (let passed = 0; passed < count; passed++) beats.run()
  }
  const pass = seconds(t)
  const { upstream, link, told } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const reqId = link.send((id) => `{"ticks":"R_1","subscribe":1,"req_id":${id}}`, { received: () => told.push('tick') })
  pass(6)
  beat(3)
  t.equal(link.isOpen, true, 'upstream was asked a moment ago')
  socket.send(`{"msg_type":"tick","req_id":${reqId}}`)
  await until(() => told.includes('tick'), 'upstream is there')
  beat(3)
  t.equal(link.isOpen, false, 'but it answers no ping')
})

await test('while upstream is silent on one connection, its browsers get no pong, and all others notice nothing', async (t) => {
  const pass = seconds(t)
  const world = await feedWorld(t, { FEED_SUBSCRIPTIONS_PER_SOCKET: '1', FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, join } = world
  market.auto = (message) => ('ping' in message ? { msg_type: 'ping', ping: 'pong' } : undefined)
  const { browser: first, request: frozen } = await subscribed(world, 'R_1')
  const { browser: second, request: alive } = await subscribed(world, 'R_2')
  const idle = await join()
  freeze(frozen)
  pass(6)
  // The connection of the second one has asked too, and upstream has answered it there.
  await until(() => market.asked('ping').length === 1)
  tick(alive, 2, 2, 'id-R_2', 'R_2')
  t.same(quotes([await second.next()]), [2])
  for (const browser of [second, idle]) t.match(await browser.ask({ ping: 1, req_id: 70 }), { ping: 'pong' })
  ping(first, 71)
  // A browser is read in order: the answer to the request after it shows that it was read.
  t.match(await first.ask({ ...OF_NOBODY, req_id: 72 }), { forget: 0, req_id: 72 })
  t.equal(hasPong(first, 71), false)

  frozen.socket.resume()
  t.match(await first.next(), { ping: 'pong', req_id: 71 }, 'the answer was late, and is not lost')
  freeze(frozen)
  pass(5)
  tick(alive, 3, 3, 'id-R_2', 'R_2')
  t.same(quotes([await second.next()]), [3])
  pass(5)
  tick(alive, 4, 4, 'id-R_2', 'R_2')
  t.same(quotes([await second.next()]), [4])
  ping(first, 73)
  pass(5)
  tick(alive, 5, 5, 'id-R_2', 'R_2')
  t.same(quotes([await second.next()]), [5])
  pass(1)
  t.same(await first.client.closed, LOST)
  t.equal(hasPong(first, 73), false)
  for (const browser of [second, idle]) t.match(await browser.ask({ ping: 1, req_id: 74 }), { ping: 'pong' })
})

await test('a browser that waits for an answer of a silent upstream gets no pong, and none before it is closed', async (t) => {
  const pass = seconds(t)
  const { market, join } = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '600' })
  const [asking, other] = [await join(), await join()]
  const request = await market.askedBy(asking, { time: 1, req_id: 1 })
  freeze(request)
  pass(6)
  ping(asking, 2)
  t.match(await asking.ask({ ...OF_NOBODY, req_id: 3 }), { forget: 0 })
  t.match(await other.ask({ ping: 1, req_id: 4 }), { ping: 'pong' }, 'it asks nothing of upstream')
  pass(10)
  await until(() => market.sockets.length === 2, 'the connection is back')
  ping(asking, 5)
  t.match(await asking.ask({ ...OF_NOBODY, req_id: 6 }), { forget: 0 })
  t.equal(hasPong(asking, 2) || hasPong(asking, 5), false, 'its turn to be closed has not come')
  await market.serve(other, { time: 1, req_id: 7 }, { time: 2 })
})

await test('a new stream does not go to a connection on which upstream is silent', async (t) => {
  const pass = seconds(t)
  const world = await feedWorld(t, { FEED_SUBSCRIPTIONS_PER_SOCKET: '2' })
  const { browser, request } = await subscribed(world, 'R_1')
  freeze(request)
  pass(6)
  const other = await world.market.askedBy(await world.join(), { ticks: 'R_2', subscribe: 1 })
  t.not(other.socket, request.socket)
  reply(other, { msg_type: 'tick' })
  browser.client.socket.terminate()
})
