import { test } from 'tap'
import {
  feedWorld,
  history,
  type Message,
  price,
  quotes,
  reply,
  tick,
  type UpstreamRequest,
} from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const MAX_BYTES = 5000
const SETTINGS = { MAX_UPSTREAM_MESSAGE_BYTES: String(MAX_BYTES), FEED_RECONNECT_SPREAD_SECONDS: '0' }
const TOO_BIG = { code: 1009, reason: 'message_too_big' }
const LOST = 'the feed lost its upstream socket'

/** Sends a message of so many bytes that belongs to a request. */
function replyWith(bytes: number, { message, socket }: UpstreamRequest, body: Message): void {
  const whole = { echo_req: message, ...body, req_id: message['req_id'], padding: '' }
  socket.send(JSON.stringify({ ...whole, padding: 'x'.repeat(bytes - JSON.stringify(whole).length) }))
}

/** Sends a message that is one byte too large. */
function replyTooBig(request: UpstreamRequest, body: Message = {}): void {
  replyWith(MAX_BYTES + 1, request, body)
}

await test('a response above MAX_UPSTREAM_MESSAGE_BYTES closes those who asked for it with 1009, and nobody else', async (t) => {
  const { market, join, metric, server } = await feedWorld(t, SETTINGS)
  const [first, second, waiting, streaming] = [await join(), await join(), await join(), await join()]
  const stream = await market.serve(streaming, { ticks: 'R_100', subscribe: 1 }, price(1))
  const time = await market.askedBy(waiting, { time: 1, req_id: 7 })
  const read = await market.askedBy(first, { active_symbols: 'brief', req_id: 1 })
  second.send({ active_symbols: 'brief', req_id: 2 })
  await second.rest()
  replyTooBig(read, { msg_type: 'active_symbols', active_symbols: [] })
  for (const { client } of [first, second]) t.same(await client.closed, TOO_BIG)
  reply(time, { time: 1 })
  t.match(await waiting.next(), { req_id: 7, time: 1 }, 'on the same connection')
  tick(stream, 2)
  t.match(await streaming.next(), { tick: { quote: 2 } })

  const again = await market.askedBy(waiting, { active_symbols: 'brief', req_id: 8 })
  t.ok(again.socket === read.socket, 'the response is not kept, and the connection is the same')
  replyWith(MAX_BYTES, again, { active_symbols: ['all'] })
  t.match(await waiting.next(), { req_id: 8, active_symbols: ['all'] }, 'a message of exactly that size passes')
  t.match(
    server.log.filter(({ level }) => Number(level) > 30),
    exactly({
      msg: 'upstream broke the WebSocket protocol',
      why: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH',
      kind: 'public',
      level: 40,
    }),
  )
  t.equal((await metric('bff_relay_endings_total')).get('kind="public",code="1009"'), 2)
  replyTooBig(read)
  await until(async () => (await metric('bff_feed_unattributed_messages_total')).get('') === 1, 'it is for nobody now')
  t.equal((await metric('bff_feed_reconnects_total')).get(''), 0)
})

await test('what a browser was sent before the message that is too large still reaches it', async (t) => {
  const { market, join } = await feedWorld(t, SETTINGS)
  const browser = await join()
  browser.send({ time: 1, req_id: 1 })
  browser.send({ active_symbols: 'brief', req_id: 2 })
  const [time, read] = [await market.next('time'), await market.next('active_symbols')]
  // All of it is read at once.
  const { _socket: wire } = read.socket as unknown as { _socket: { cork(): void; uncork(): void } }
  wire.cork()
  reply(time, { time: 1 })
  replyTooBig(read)
  reply(time, { time: 2 })
  wire.uncork()
  t.same(await browser.client.closed, TOO_BIG)
  t.match(
    browser.client.texts.map((text) => JSON.parse(text) as Message),
    exactly({ req_id: 1, time: 1 }),
  )
})

await test('a message of a stream that is too large closes its browsers, and the stream is forgotten', async (t) => {
  const { market, join, server } = await feedWorld(t, SETTINGS)
  const [first, second, other] = [await join(), await join(), await join()]
  for (const browser of [first, second]) browser.send({ ticks: 'A', subscribe: 1, req_id: 1 })
  other.send({ ticks: 'C', subscribe: 1, req_id: 2 })
  const [stream, neighbour] = [await market.next('ticks'), await market.next('ticks')]
  t.ok(stream.socket === neighbour.socket)
  tick(stream, 1, 1, 'id-A', 'A')
  tick(neighbour, 1, 1, 'id-C', 'C')
  for (const browser of [first, second, other]) await browser.next()
  replyTooBig(stream, { msg_type: 'tick', subscription: { id: 'id-A' }, tick: { symbol: 'A', quote: 1 } })
  for (const { client } of [first, second]) t.same(await client.closed, TOO_BIG)
  const forgotten = await market.next('forget', 'id-A')
  // Until upstream has forgotten it, its messages are for nobody. Whatever their size, they harm nobody.
  replyTooBig(stream, { msg_type: 'tick', subscription: { id: 'id-A' } })
  replyTooBig(forgotten, { msg_type: 'forget', forget: 1 })
  stream.socket.send('x'.repeat(MAX_BYTES + 1))
  tick(neighbour, 2, 2, 'id-C', 'C')
  t.same(quotes(await other.rest()), [2])
  const later = await join()
  const fresh = await market.askedBy(later, { ticks: 'A', subscribe: 1 })
  t.ok(fresh.socket === neighbour.socket)
  tick(fresh, 3, 3, 'id-A2', 'A')
  t.match(await later.next(), { tick: { quote: 3 } })
  t.equal(market.asked('forget').length, 1)
  t.notOk(server.log.some(({ msg }) => msg === LOST))
})

await test('a stream whose first history is too large goes to those who have asked for another one', async (t) => {
  const { market, join } = await feedWorld(t, SETTINGS)
  const [first, equal, other, single] = [await join(), await join(), await join(), await join()]
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 5000 }
  const large = await market.askedBy(first, wanted)
  equal.send(wanted)
  other.send({ ...wanted, count: 2, req_id: 3 })
  for (const browser of [equal, other]) await browser.rest()
  replyTooBig(large, { ...history(100), subscription: { id: 'large' } })
  for (const { client } of [first, equal]) t.same(await client.closed, TOO_BIG)
  const forget = await market.next('forget', 'large')
  const small = await market.next('ticks_history')
  t.equal(small.message['count'], 2)
  t.ok(market.requests.indexOf(forget) < market.requests.indexOf(small), 'upstream takes a symbol once')
  reply(small, { ...history(101), subscription: { id: 'small' } })
  t.match(await other.next(), { req_id: 3, ...history(101), subscription: { id: 'small' } })
  tick(large, 102, 102, 'large')
  tick(small, 103, 103, 'small')
  t.same(quotes(await other.rest()), [103])
  t.match(await other.ask({ forget: 'large' }), { forget: 0 }, 'it knows its own stream alone')

  single.send({ ticks_history: 'R_2', subscribe: 1, end: 'latest', count: 5000 })
  replyTooBig(await market.next('ticks_history'), { ...history(100), subscription: { id: 'single' } })
  t.same(await single.client.closed, TOO_BIG)
  await market.next('forget', 'single')
})

await test('a history for a later subscriber that is too large closes that one alone', async (t) => {
  const { market, join, metric } = await feedWorld(t, SETTINGS)
  const [first, second, third] = [await join(), await join(), await join()]
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 }
  const stream = await market.serve(first, wanted, { ...history(100), subscription: { id: 'h' } })
  second.send({ ...wanted, count: 5000 })
  replyTooBig(await market.next('ticks_history'), history(100))
  t.same(await second.client.closed, TOO_BIG)
  await until(async () => (await metric('bff_feed_subscribers')).get('') === 1, 'it has left the stream')
  reply(await market.askedBy(third, { ...wanted, count: 5000, req_id: 3 }), history(100))
  t.match(await third.next(), { req_id: 3, ...history(100) }, 'it is asked for again')
  tick(stream, 101, 101, 'h')
  for (const browser of [first, third]) t.same(quotes(await browser.rest()), [101])
  t.equal(market.asked('forget').length, 0)
})

await test('a stream that was lost and is renewed with a history that is too large comes back with another one', async (t) => {
  const { market, join, server } = await feedWorld(t, SETTINGS)
  const [first, back] = [await join(), await join()]
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 5000 }
  const lost = await market.serve(first, wanted, { ...history(100), subscription: { id: 'h' } })
  lost.socket.terminate()
  const renewed = await market.next('ticks_history')
  t.equal((await first.client.closed).code, 1013)
  back.send({ ...wanted, count: 2, req_id: 2 })
  await back.rest()
  replyTooBig(renewed, { ...history(200), subscription: { id: 'large' } })
  const small = await market.next('ticks_history')
  t.match(small.message, { count: 2 })
  reply(small, { ...history(200), subscription: { id: 'small' } })
  t.match(await back.next(), { req_id: 2, ...history(200) })
  t.equal(server.log.filter(({ msg }) => msg === LOST).length, 1)
})
