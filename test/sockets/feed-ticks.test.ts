import { test } from 'tap'
import { feedWorld, reply, tick, type UpstreamRequest } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

await test('browsers with PUBLIC_FEED=shared', async (t) => {
  const { market, join, metric, upstream } = await feedWorld(t, { FEED_LINGER_SECONDS: '3' })
  const asked = (symbol: string): UpstreamRequest[] =>
    market.requests.filter(({ message }) => [message['ticks']].flat().includes(symbol))

  await t.test('a browser that asks nothing costs nothing upstream', async (t) => {
    const idle = await join()
    t.same(await idle.ask({ ping: 1, req_id: 3, passthrough: { a: 1 } }), {
      echo_req: { ping: 1, req_id: 3, passthrough: { a: 1 } },
      req_id: 3,
      passthrough: { a: 1 },
      ping: 'pong',
      msg_type: 'ping',
    })
    t.equal(upstream.open, 0)
  })

  await t.test('two share one subscription, and each gets answers to its own request', async (t) => {
    const [first, second] = [await join(), await join()]
    const text = '{"ticks":"R_1", "subscribe":1,"req_id":-7,"passthrough":{"__proto__":{"a":1}}}'
    first.send(text)
    const request = await market.next('ticks')
    t.same(request.message, { ticks: 'R_1', subscribe: 1, req_id: request.message['req_id'] })
    const start = request.text.replace(/\}$/, '')
    // Numbers, escapes and white space inside a value reach the browser as upstream wrote them.
    const tickText = '{"epoch":1, "quote":1.10,"note":"\\u00e9 \\"req_id\\":5","huge":12345678901234567890}'
    request.socket.send(
      `{"tick":${tickText},"echo_req":${start}},"req_id":${Number(request.message['req_id'])},"subscription":{"id":"one"},"msg_type":"tick"}`,
    )
    const answer = await first.nextText()
    t.ok(answer.includes(`"tick":${tickText}`), answer)
    t.match(JSON.parse(answer), { req_id: -7, msg_type: 'tick', subscription: { id: 'one' } })
    t.ok(answer.includes(`"echo_req":${text}`) && answer.includes('"passthrough":{"__proto__":{"a":1}}'), answer)

    const late = await second.ask({ subscribe: 1, ticks: 'R_1' })
    t.same(late['echo_req'], { subscribe: 1, ticks: 'R_1' })
    t.notOk('req_id' in late || 'passthrough' in late, 'what was not sent is not answered')
    t.match(late, { tick: { epoch: 1 }, subscription: { id: 'one' } }, 'the newest tick comes at once')
    tick(request, 2, 2, 'one')
    for (const browser of [first, second]) t.match(await browser.next(), { tick: { quote: 2 } })
    t.equal(asked('R_1').length, 1)
    t.equal((await metric('bff_feed_subscribers')).get(''), 2)

    reply(request, { msg_type: 'tick', error: { code: 'MarketIsClosed', message: 'closed' } })
    t.match(await first.next(), { req_id: -7, error: { code: 'MarketIsClosed' } })
    t.match(await second.next(), { echo_req: { ticks: 'R_1' }, error: { code: 'MarketIsClosed' } })
    const again = await market.askedBy(first, { ticks: 'R_1', subscribe: 1, req_id: 0 })
    tick(again, 3, 3, 'two')
    t.match(await first.next(), { req_id: 0, tick: { quote: 3 } }, 'an error is not kept')
    t.same(await second.rest(), [], 'nobody gets what he has not asked for')
  })

  await t.test('an error reaches all who wait, and is not kept', async (t) => {
    const [first, second] = [await join(), await join()]
    const request = await market.askedBy(first, { ticks: 'NONE', subscribe: 1, req_id: 1 })
    second.send({ ticks: 'NONE', subscribe: 1, req_id: 2 })
    await second.rest()
    reply(request, { msg_type: 'tick', error: { code: 'InvalidSymbol', message: 'Symbol NONE invalid' } })
    t.match(await first.next(), { req_id: 1, error: { code: 'InvalidSymbol' } })
    t.match(await second.next(), { req_id: 2, error: { code: 'InvalidSymbol' } })
    tick(await market.askedBy(first, { ticks: 'NONE', subscribe: 1, req_id: 3 }), 5)
    t.match(await first.next(), { req_id: 3, tick: { quote: 5 } })
  })

  await t.test('a second equal subscription is refused once the first is answered', async (t) => {
    const browser = await join()
    const request = await market.askedBy(browser, { ticks: 'R_2', subscribe: 1, req_id: 1 })
    browser.send({ ticks: 'R_2', subscribe: 1, req_id: 2 })
    browser.send({ ticks: ['R_3', 'R_2'], subscribe: 1, req_id: 3 })
    t.same(await browser.rest(), [])
    tick(request, 1)
    t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
    const error = { code: 'AlreadySubscribed', message: 'You are already subscribed to R_2' }
    t.same(await browser.next(), {
      echo_req: { ticks: 'R_2', subscribe: 1, req_id: 2 },
      req_id: 2,
      error,
      msg_type: 'tick',
    })
    t.match(await browser.next(), { req_id: 3, error })

    const refused = await market.askedBy(browser, { ticks: 'R_4', subscribe: 1, req_id: 4 })
    browser.send({ ticks: 'R_4', subscribe: 1, req_id: 5 })
    await browser.rest()
    reply(refused, { error: { code: 'InvalidSymbol', message: '' } })
    t.match(await browser.next(), { req_id: 4, error: { code: 'InvalidSymbol' } })
    reply(await market.next('ticks'), { error: { code: 'InvalidSymbol', message: '' } })
    t.match(await browser.next(), { req_id: 5, error: { code: 'InvalidSymbol' } }, 'as upstream would have said')
  })

  await t.test('a stream is forgotten a while after its last browser has left', async (t) => {
    const [first, second] = [await join(), await join()]
    const request = await market.askedBy(first, { ticks: 'R_5', subscribe: 1 })
    first.client.socket.terminate()
    await until(async () => (await metric('bff_relays')).get('kind="public"') !== undefined)
    tick(request, 1, 1, 'id-5')
    t.match(await second.ask({ ticks: 'R_5', subscribe: 1 }), { tick: { quote: 1 } }, 'it is there for the next one')
    t.match(await second.ask({ forget: 'id-5' }), { forget: 1 })
    const forget = await market.next('forget', 'id-5')
    t.ok(forget.socket === request.socket)
    // The answer is still on its way when the stream is wanted again.
    const again = await market.askedBy(second, { ticks: 'R_5', subscribe: 1 })
    tick(request, 2, 2, 'id-5')
    reply(forget, { forget: 1, msg_type: 'forget' })
    tick(again, 3, 3, 'id-6')
    t.match(await second.next(), { tick: { quote: 3 } }, 'messages of the forgotten stream are for nobody')
  })

  await t.test('a stream that upstream takes for another one everywhere is refused', async (t) => {
    const browser = await join()
    browser.send({ ticks: 'R_9', subscribe: 1, req_id: 1 })
    const error = { code: 'AlreadySubscribed', message: 'of upstream' }
    for (let count = 0; count < 3; count++) reply(await market.next('ticks', 'R_9'), { msg_type: 'tick', error })
    t.match(await browser.next(), { req_id: 1, error })
  })

  await t.test('a message that answers no request is sent to no browser', async (t) => {
    const browser = await join()
    const request = await market.askedBy(browser, { ticks: 'R_7', subscribe: 1, req_id: 1 })
    request.socket.send('{"msg_type":"tick","tick":{"quote":0}}')
    request.socket.send('{"msg_type":"tick","req_id":987654321,"tick":{"quote":0}}')
    request.socket.send('{"msg_type":"tick","req_id":987654320,"subscription":{"id":"zombie"},"tick":{"quote":0}}')
    request.socket.send('no JSON')
    request.socket.send(Buffer.from([0]), { binary: true })
    tick(request, 1)
    t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
    t.equal((await metric('bff_feed_unattributed_messages_total')).get(''), 4)
    t.ok(await market.next('forget', 'zombie'), 'a stream that nobody wants is forgotten')
  })
})
