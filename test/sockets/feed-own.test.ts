import type { Duplex } from 'node:stream'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { feedWorld, price, quotes, reply, tick, type UpstreamRequest } from '../support/feed/world.ts'
import { nextEvent, until, within } from '../support/time/until.ts'

await test('own sockets and forgets with PUBLIC_FEED=shared', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_MAX_OWN_SOCKETS: '3' })
  const ownSockets = async (): Promise<number | undefined> => (await metric('bff_feed_own_sockets')).get('')
  const noneOwn = (): Promise<void> => until(async () => (await ownSockets()) === 0, 'own sockets are gone')
  /** The next request with exactly this text. */
  const verbatim = async (text: string): Promise<UpstreamRequest> => {
    const found = (): UpstreamRequest | undefined => market.requests.find((each) => each.text === text && !each.isTaken)
    await until(() => found() !== undefined, `upstream gets ${text}`)
    const request = found()
    if (request === undefined) throw new Error('it was there')
    request.isTaken = true
    return request
  }

  await t.test('what must not be interpreted passes byte for byte', async (t) => {
    const odd = [
      '{"proposal":1,"amount":1.10,"req_id":1}',
      '{"ticks":"R_1","subscribe":true}',
      '{"ticks":"R_1","subscribe":"1"}',
      '{"ticks":"R_1","ticks":"R_2","subscribe":1}',
      '{"ticks":"R_1","subscribe":1,"req_id":"1"}',
      '{"ticks":"R_1","subscribe":1,"req_id":12345678901234567890}',
      '{"ticks":"R_1","subscribe":1,"req_id":1e400}',
      '{"ticks":"R_1","subscribe":1,"passthrough":[]}',
      '{"ticks":["R_1","R_1"],"subscribe":1}',
      '{"ticks":[],"subscribe":1}',
      '{"ticks":["R_1",2],"subscribe":1}',
      '{"ticks":"R_1","subscribe":1,"unknown":1}',
      '{"ticks_history":["R_1"],"subscribe":1}',
      '{"ticks_history":"R_1","subscribe":1,"granularity":60}',
      '{"ticks_history":"R_1","subscribe":1,"style":"candles","granularity":"60"}',
      '{"ticks_history":"R_1","subscribe":1,"style":"lines"}',
      '{"ticks":"R_1","time":1}',
      '{"active_symbols":"brief","subscribe":1}',
      '{"unknown":1}',
      '[]',
      'no JSON',
    ]
    const browser = await join()
    let own: WebSocket | undefined
    for (const text of odd) {
      browser.send(text)
      const { socket } = await verbatim(text)
      t.ok(socket === (own ??= socket), text)
    }
    own?.send('{ "echo_req" : {"req_id":9}, "amount":1.10 }')
    t.equal(await browser.nextText(), '{ "echo_req" : {"req_id":9}, "amount":1.10 }')
    own?.send(Buffer.from([1, 2]))
    t.equal(await browser.nextText(), '\u0001\u0002')
    t.equal(await ownSockets(), 1)
    browser.client.socket.close(1000, 'bye')
    const [code, reason] = (await nextEvent(own as WebSocket, 'close')) as [number, Buffer]
    t.same([code, reason.toString()], [1000, 'bye'], 'upstream sees the close of the browser')
    await noneOwn()
  })

  await t.test('upstream’s close of an own socket is the browser’s', async (t) => {
    const browser = await join()
    browser.send('{"proposal":1}')
    const { socket } = await verbatim('{"proposal":1}')
    socket.close(3999, 'why')
    t.same(await browser.client.closed, { code: 3999, reason: 'why' })
    await noneOwn()
  })

  await t.test('a key that is written with escapes is read as the name that it spells', async (t) => {
    const browser = await join()
    browser.send('{"tick\\u0073":"R_8","subscribe":1}')
    const request = await market.next('ticks')
    t.equal(request.message['ticks'], 'R_8')
    tick(request, 1, 1, 'id-8')
    t.match(await browser.next(), { echo_req: { ticks: 'R_8' }, tick: { quote: 1 } })
    t.equal(await ownSockets(), 0)
  })

  await t.test('forget and forget_all without an own socket concern this browser alone', async (t) => {
    const [first, second] = [await join(), await join()]
    const requests = []
    for (const [index, symbol] of ['R_10', 'R_11'].entries()) {
      const request = await market.askedBy(first, { ticks: symbol, subscribe: 1, req_id: index })
      tick(request, 1, 1, `id-${symbol}`, symbol)
      requests.push(request)
      await first.next()
    }
    t.match(await second.ask({ forget: 'id-R_10' }), { forget: 0 }, 'the id of another browser')
    await second.ask({ ticks: 'R_10', subscribe: 1, req_id: 5 })
    t.same(await second.ask({ forget_all: ['candles', 'proposal'] }), {
      echo_req: { forget_all: ['candles', 'proposal'] },
      forget_all: [],
      msg_type: 'forget_all',
    })
    const forgotten = await first.ask({ forget_all: ['ticks', 'candles'], req_id: 4 })
    t.same([forgotten['req_id'], forgotten['forget_all']], [4, ['id-R_10', 'id-R_11']])
    const [request] = requests
    if (request !== undefined) tick(request, 2, 2, 'id-R_10', 'R_10')
    t.match(await second.next(), { req_id: 5, tick: { quote: 2 } })
    t.same(await first.rest(), [])

    const unknown = await market.askedBy(second, { forget_all: 'balloons', req_id: 6 })
    reply(unknown, { msg_type: 'forget_all', error: { code: 'InputValidationFailed', message: '' } })
    t.match(await second.next(), { req_id: 6, error: { code: 'InputValidationFailed' } })
    second.send({ forget_all: ['ticks', 'balloons'], req_id: 7 })
    reply(await market.next('forget_all'), { msg_type: 'forget_all', forget_all: [] })
    t.same((await second.next())['forget_all'], ['id-R_10'])
    second.send({ forget_all: [], req_id: 9 })
    reply(await market.next('forget_all'), { error: { code: 'InputValidationFailed', message: '' } })
    t.match(await second.next(), { req_id: 9, error: { code: 'InputValidationFailed' } })
    second.send({ forget: 5, req_id: 8 })
    reply(await market.next('forget'), { error: { code: 'InputValidationFailed', message: '' } })
    t.match(await second.next(), { req_id: 8, error: { code: 'InputValidationFailed' } })
    second.client.socket.close()
    await noneOwn()
  })

  await t.test('forget_all waits for a stream that has no answer yet, and later requests wait for it', async (t) => {
    const browser = await join()
    browser.send({ ticks: 'R_12', subscribe: 1, req_id: 1 })
    browser.send({ forget_all: 'ticks', req_id: 2 })
    browser.send({ ticks: 'R_12', subscribe: 1, req_id: 3 })
    browser.send({ ping: 1, req_id: 4 })
    const request = await market.next('ticks')
    tick(request, 1, 1, 'id-12')
    // The stream that lingers keeps its id: a page that read these in another order would drop its new stream.
    t.match(await browser.next(), { req_id: 1, tick: { quote: 1 } })
    t.same((await browser.next())['forget_all'], ['id-12'])
    t.match(await browser.next(), { req_id: 3, tick: { quote: 1 }, subscription: { id: 'id-12' } })
    t.match(await browser.next(), { req_id: 4, ping: 'pong' })
    tick(request, 2, 2, 'id-12')
    t.same(quotes(await browser.rest()), [2])
  })

  await t.test('forget_all waits for all symbols of an array, but not for one that is silent', async (t) => {
    const browser = await join()
    const got: unknown[] = []
    for (const isSilent of [false, true]) {
      const symbols = isSilent ? ['S_1', 'S_2'] : ['S_3', 'S_4']
      browser.send({ ticks: symbols, subscribe: 1, req_id: 1 })
      browser.send({ forget_all: 'ticks', req_id: 2 })
      for (const symbol of symbols.slice(0, isSilent ? 1 : 2)) {
        tick(await market.next('ticks', symbol), 1, 1, `id-${symbol}`, symbol)
      }
      if (isSilent) await market.next('ticks', 'S_2')
      for (let count = isSilent ? 2 : 3; count > 0; count--) got.push((await browser.next())['forget_all'])
    }
    t.same(got, [undefined, undefined, ['id-S_3', 'id-S_4'], undefined, ['id-S_1']])
  })

  await t.test('with an own socket, pings and forgets go there too', async (t) => {
    const browser = await join()
    browser.send('{"proposal":1,"subscribe":1}')
    const own = await verbatim('{"proposal":1,"subscribe":1}')
    await market.serve(browser, { ticks: 'R_13', subscribe: 1, req_id: 1 }, price(1, 'id-13'))
    browser.send('{"ping":1,"req_id":2}')
    t.ok((await verbatim('{"ping":1,"req_id":2}')).socket === own.socket)
    browser.send('{"forget":"of-own"}')
    t.ok((await verbatim('{"forget":"of-own"}')).socket === own.socket)
    own.socket.send('{"forget":1}')
    t.equal(await browser.nextText(), '{"forget":1}')
    const forget = await market.askedBy(browser, { forget_all: ['ticks', 'proposal'], req_id: 3, passthrough: {} })
    t.ok(forget.socket === own.socket)
    own.socket.send('{"proposal":{}}')
    reply(forget, { forget_all: ['of-own'], msg_type: 'forget_all' })
    t.equal(await browser.nextText(), '{"proposal":{}}')
    const answer = await browser.next()
    t.match(answer, { req_id: 3, passthrough: {} })
    t.same(answer['forget_all'], ['id-13', 'of-own'])

    // The stream is refused after the request to forget it, and before upstream's answer to that.
    browser.send({ ticks: 'NONE', subscribe: 1, req_id: 4 })
    browser.send({ forget_all: 'ticks', req_id: 5 })
    reply(await market.next('ticks'), { msg_type: 'tick', error: { code: 'MarketIsClosed', message: '' } })
    t.match(await browser.next(), { req_id: 4, error: { code: 'MarketIsClosed' } })
    reply(await market.next('forget_all'), { forget_all: [], msg_type: 'forget_all' })
    t.same((await browser.next())['forget_all'], [])
  })

  await t.test('with an own socket, later requests wait for upstream’s answer to forget_all', async (t) => {
    const browser = await join()
    browser.send('{"proposal":1,"subscribe":1,"req_id":1}')
    await verbatim('{"proposal":1,"subscribe":1,"req_id":1}')
    const stream = await market.askedBy(browser, { ticks: 'R_14', subscribe: 1, req_id: 2 })
    tick(stream, 1, 1, 'id-14')
    t.match(await browser.next(), { req_id: 2 })

    browser.send({ forget_all: 'ticks', req_id: 3 })
    browser.send({ ticks: 'R_14', subscribe: 1, req_id: 4 })
    const refused = await market.next('forget_all')
    tick(stream, 2, 2, 'id-14')
    reply(refused, { msg_type: 'forget_all', error: { code: 'RateLimit', message: '' } })
    t.match(await browser.next(), { req_id: 2, tick: { quote: 2 } }, 'a stream goes on meanwhile')
    t.match(await browser.next(), { req_id: 3, error: { code: 'RateLimit' } })
    t.match(await browser.next(), { req_id: 4, error: { code: 'AlreadySubscribed' } }, 'nothing was forgotten')

    browser.send({ forget_all: 'ticks', req_id: 5 })
    browser.send({ ticks: 'R_14', subscribe: 1, req_id: 6 })
    reply(await market.next('forget_all'), { msg_type: 'forget_all', forget_all: [] })
    t.same((await browser.next())['forget_all'], ['id-14'])
    t.match(await browser.next(), { req_id: 6, tick: { quote: 2 } })
    browser.client.socket.close()
    await until(async () => (await ownSockets()) === 1, 'the own socket is gone')
  })

  await t.test('beyond FEED_MAX_OWN_SOCKETS the answer is an error in upstream’s shape', async (t) => {
    const others = [await join(), await join()]
    for (const [index, other] of others.entries()) {
      other.send(`{"proposal":${index + 2}}`)
      await verbatim(`{"proposal":${index + 2}}`)
    }
    const browser = await join()
    t.match(await browser.ask('{"proposal":9,"req_id":4}'), {
      echo_req: { proposal: 9, req_id: 4 },
      req_id: 4,
      msg_type: /^proposal$/,
      error: { code: 'RateLimit' },
    })
    others[0]?.client.socket.close()
    await until(async () => ((await ownSockets()) ?? 9) < 3)
    browser.send('{"proposal":10}')
    await verbatim('{"proposal":10}')
  })
})

await test('what gets no own socket is no request of its browser', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_MAX_OWN_SOCKETS: '0', FEED_REQUESTS_PER_MINUTE: '1' })
  const browser = await join()
  for (const id of [1, 2]) t.match(await browser.ask(`{"proposal":${id}}`), { error: { code: 'RateLimit' } })
  browser.send({ ticks: 'R_10', subscribe: 1, req_id: 3 })
  t.match((await market.next('ticks')).text, 'R_10')
})

await test('an own socket that is still being opened ends with its browser', async (t) => {
  const { upstream, join, metric, server } = await feedWorld(t)
  const opening = new Promise<Duplex>((resolve) => {
    upstream.onUpgrade = (_request, socket) => resolve(socket.resume())
  })
  const browser = await join()
  browser.send('{"proposal":1}')
  const ended = nextEvent(await within(opening, 'a handshake'), 'end')
  browser.client.socket.close()
  await ended
  t.equal((await metric('bff_feed_own_sockets')).get(''), 0)
  t.notOk(
    server.log.some(({ level }) => Number(level) > 30),
    'it is no failure',
  )
})
