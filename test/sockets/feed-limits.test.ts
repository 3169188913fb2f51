import { test } from 'tap'
import { Member } from '../../src/sockets/feed/browser/member.ts'
import { type FeedBrowser, feedWorld, price, refusal, reply, served, tick } from '../support/feed/world.ts'
import { within } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

await test('FEED_REQUESTS_PER_MINUTE counts what goes upstream, and nothing else', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '4' })
  const [browser, other] = [await join(), await join()]
  await market.serve(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(1, 'id-1'))
  await market.serve(browser, { time: 1, req_id: 2 }, { time: 1 })
  browser.send('{"proposal":1}')
  await market.next('proposal')
  await market.serve(browser, { active_symbols: 'brief', req_id: 3 }, { active_symbols: [] })
  const limited = { error: { code: 'RateLimit', message: 'You have reached the rate limit for time.' } }
  t.same(await browser.ask({ time: 1, req_id: 4, passthrough: { a: 1 } }), {
    echo_req: { time: 1, req_id: 4, passthrough: { a: 1 } },
    req_id: 4,
    passthrough: { a: 1 },
    ...limited,
    msg_type: 'time',
  })
  t.match(await browser.ask({ ticks: 'R_2', subscribe: 1, req_id: 5 }), { req_id: 5, error: { code: 'RateLimit' } })
  const proposal = { proposal: 2, req_id: 6, passthrough: { deal: 7 } }
  t.match(await browser.ask(proposal), { ...proposal, proposal: undefined, error: { code: 'RateLimit' } })
  t.match(await browser.ask('{"unknown":1}'), {
    echo_req: { unknown: 1 },
    error: { code: 'RateLimit' },
    msg_type: 'error',
  })
  t.match(await browser.ask({ forget_all: 'balloons', req_id: 7 }), { req_id: 7, error: { code: 'RateLimit' } })
  t.match(await browser.ask({ active_symbols: 'brief', req_id: 8 }), { req_id: 8, active_symbols: [] })
  t.match(await browser.ask({ forget: 'id-1', req_id: 9 }), { req_id: 9, forget: 1 })
  t.match(await browser.ask({ ticks: 'R_1', subscribe: 1, req_id: 10 }), { req_id: 10, tick: {} })
  await market.askedBy(other, { time: 1 })
})

await test('a forget_all that a limit forbids does not hold up later requests', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '1' })
  const browser = await join()
  await market.serve(browser, { time: 1 }, { time: 1 })
  t.match(await browser.ask({ forget_all: 'balloons', req_id: 1 }), { req_id: 1, error: { code: 'RateLimit' } })
  t.match(await within(browser.ask({ ping: 1 }), 'a pong', 5000), { ping: 'pong' })
  const other = await join()
  await market.askedBy(other, { time: 1 })
  t.same(market.asked('forget_all'), [], 'nothing went upstream')
})

await test('FEED_REQUESTS_PER_MINUTE refuses no ping of a browser with an own socket', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '2' })
  const browser = await join()
  await market.serve(browser, { proposal: 1 }, { proposal: {} })
  reply(await market.askedBy(browser, { ping: 1, req_id: 1 }), { ping: 'pong of the own socket' })
  t.match(await browser.next(), { req_id: 1, ping: 'pong of the own socket' })
  t.match(await browser.ask({ proposal: 1 }), { error: { code: 'RateLimit' } })
  t.match(await browser.ask({ ping: 1, req_id: 2, passthrough: {} }), { req_id: 2, passthrough: {}, ping: 'pong' })
  t.equal(market.asked('ping').length, 1)
})

await test('FEED_SUBSCRIPTIONS limits the streams of a browser, and the upstream sockets limit those of all', async (t) => {
  const { market, join, upstream } = await feedWorld(t, {
    FEED_SUBSCRIPTIONS: '3',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '2',
    FEED_LINGER_SECONDS: '3600',
  })
  market.auto = (message) => served(message)
  const [first, second] = [await join(), await join()]
  for (const symbol of ['A', 'B', 'C']) t.match(await first.ask({ ticks: symbol, subscribe: 1 }), { tick: { symbol } })
  t.equal(upstream.open, 2, 'a third subscription needs a second socket')
  t.match(await first.ask({ ticks: 'D', subscribe: 1, req_id: 1 }), { req_id: 1, error: { code: 'RateLimit' } })
  t.match(await second.ask({ ticks: 'D', subscribe: 1 }), { tick: { symbol: 'D' } })
  t.match(await second.ask({ ticks: 'E', subscribe: 1, req_id: 2 }), { req_id: 2, error: { code: 'RateLimit' } })
  // One browser that comes and goes: what it leaves behind gives way, the oldest first.
  await first.ask({ forget_all: 'ticks' })
  for (const symbol of ['E', 'F', 'G'])
    t.match(await second.ask({ ticks: symbol, subscribe: 1 }), symbol === 'G' ? { error: {} } : { tick: { symbol } })
  t.same(
    market.asked('forget').map(({ message }) => message['forget']),
    ['id-A', 'id-B'],
  )
  t.match(await first.ask({ ticks: 'C', subscribe: 1 }), { tick: { symbol: 'C' } }, 'still there')
  t.equal(market.asked('ticks').filter(({ message }) => message['ticks'] === 'C').length, 1)
})

await test('a browser that sends as fast as it can does not keep others waiting', async (t) => {
  const { join } = await feedWorld(t)
  const [flooding, other] = [await join(), await join()]
  for (let count = 0; count < 20_000; count++) flooding.send({ ping: 1, req_id: count })
  for (let count = 0; count < 20; count++) await other.ask({ ping: 1 })
  t.ok(flooding.client.received.length < 20_000, 'it is read no faster than a page sends')
  flooding.client.socket.terminate()
})

async function ask(browser: FeedBrowser): Promise<unknown> {
  return (await browser.ask({ time: 1 }))['error'] ?? 'the time'
}

await test('once upstream limits the requests of all, all browsers of an address together get as many as one', async (t) => {
  const { market, join: from } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '4', TRUST_PROXY: '1' })
  let code: string | undefined
  market.auto = () => (code === undefined ? { msg_type: 'time', time: 1 } : refusal(code))
  const ofThisServer = { code: 'RateLimit', message: 'You have reached the rate limit for time.' }

  code = 'WrongResponse'
  t.match(await ask(await from('192.0.2.2')), { code }, 'another error changes nothing')
  code = undefined
  const greedy = await Promise.all(Array.from({ length: 3 }, () => from('192.0.2.1')))
  for (const browser of greedy) for (let count = 0; count < 3; count++) t.equal(await ask(browser), 'the time')
  code = 'RateLimit'
  t.match(await ask(await from('192.0.2.2')), { code, message: 'of upstream' })
  code = undefined
  for (const browser of [...greedy, await from('192.0.2.1')]) t.same(await ask(browser), ofThisServer)
  const others = [await from('192.0.2.2'), await from('192.0.2.3')]
  for (const browser of others) for (let count = 0; count < 2; count++) t.equal(await ask(browser), 'the time')
  t.same(await ask(await from('192.0.2.2')), ofThisServer, 'all browsers of an address together')
})

await test('what a browser asks beyond its own limit takes nothing from the share of its address', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '3' })
  const [greedy, other, third] = [await join(), await join(), await join()]
  for (let count = 0; count < 3; count++) greedy.send(`{"proposal":${count}}`)
  for (let count = 0; count < 3; count++) t.match(await ask(greedy), { code: 'RateLimit' }, 'its own limit')
  market.auto = () => (market.asked('time').length === 1 ? refusal('RateLimit') : { time: 1 })
  t.match(await ask(other), { message: 'of upstream' })
  for (const browser of [other, third]) t.equal(await ask(browser), 'the time')
  t.match(await ask(third), { message: 'You have reached the rate limit for time.' })
})

await test('a message that this server fails to handle ends the socket of its browser, and no other', async (t) => {
  const { market, join, server } = await feedWorld(t)
  const [browser, other] = [await join(), await join()]
  for (const each of [browser, other]) each.send({ ticks: 'R_100', subscribe: 1 })
  const request = await market.next('ticks')
  tick(request, 1)
  for (const each of [browser, other]) await each.next()
  const planted = t.capture(Member.prototype, 'spend', () => {
    throw new Error('a planted error')
  })
  browser.send({ time: 1 })
  t.match(await browser.client.closed, { code: 1011, reason: 'internal_error' })
  planted.restore()
  t.match(
    server.log.filter(({ msg }) => msg === 'a message of a browser could not be handled'),
    exactly({ level: 50, err: { message: 'a planted error' } }),
  )
  tick(request, 2)
  t.match(await other.next(), { tick: { quote: 2 } })
  reply(await market.askedBy(other, { time: 1, req_id: 1 }), { time: 1 })
  t.match(await other.next(), { req_id: 1, time: 1 })
})

await test('FEED_SUBSCRIPTIONS counts streams that were forgotten before their first answer, until that is there', async (t) => {
  // As if the time were over for which messages wait for the answer to a forget_all.
  t.intercept(Member.prototype, 'hold', { value: () => () => undefined })
  const { market, join } = await feedWorld(t, { FEED_SUBSCRIPTIONS: '1' })
  const browser = await join()
  browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
  browser.send({ forget_all: 'ticks', req_id: 2 })
  const request = await market.next('ticks')
  t.match(await browser.ask({ ticks: 'R_2', subscribe: 1, req_id: 3 }), { req_id: 3, error: { code: 'RateLimit' } })
  browser.send({ ticks: 'R_1', subscribe: 1, req_id: 4 })
  browser.send({ forget_all: 'ticks', req_id: 5 })
  t.same(await browser.rest(), [], 'the same stream waits')
  tick(request, 1, 1, 'id-1')
  t.match(await browser.next(), { req_id: 1, tick: {} })
  t.match(await browser.next(), { req_id: 2, forget_all: ['id-1'] })
  t.match(await browser.next(), { req_id: 4, tick: {} })
  t.match(await browser.next(), { req_id: 5, forget_all: ['id-1'] })
  t.match(await browser.ask({ ticks: 'R_1', subscribe: 1, req_id: 6 }), { req_id: 6, tick: {} })
})
