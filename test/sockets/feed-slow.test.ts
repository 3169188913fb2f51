import { test, type Test } from 'tap'
import {
  type FeedBrowser,
  type FeedWorld,
  feedWorld,
  type Message,
  price,
  quotes,
  reply,
  tick,
} from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

interface SlowWorld extends FeedWorld {
  readonly slow: FeedBrowser
  /** Lets the browser read. @returns what it gets until a message with this `req_id`, each as that and its payload */
  readonly readUntil: (reqId: number) => Promise<unknown[][]>
}

/** A browser that reads nothing, and for which so much waits that its streams are conflated. */
async function slowWorld(t: Test): Promise<SlowWorld> {
  const world = await feedWorld(t, { FEED_CACHE_SECONDS: '60', MAX_BUFFERED_BYTES: '16777216' })
  const { market, join, metric } = world
  const browser = await join()
  await market.serve(browser, { active_symbols: 'brief' }, { active_symbols: 'x'.repeat(100_000) })
  browser.client.socket.pause()
  await until(async () => {
    for (let count = 0; count < 10; count++) browser.send({ active_symbols: 'brief' })
    return ((await metric('bff_relay_buffered_bytes')).get('') ?? 0) > 100_000
  }, 'the browser is slow')
  const readUntil = async (reqId: number): Promise<unknown[][]> => {
    browser.client.socket.resume()
    const got = []
    for (let message: Message = {}; message['req_id'] !== reqId;) {
      message = await browser.next()
      if (!('active_symbols' in message)) got.push(gist(message))
    }
    return got
  }
  return { ...world, slow: browser, readUntil }
}

function gist({ req_id, tick, error, forget_all, time }: Message): unknown[] {
  const { quote } = (tick ?? {}) as { quote?: number }
  const { code } = (error ?? {}) as { code?: string }
  return [req_id, quote ?? code ?? forget_all ?? time]
}

/** Waits until the server has taken so many messages with this operation. */
function taken({ metric }: FeedWorld, operation: string, count: number): Promise<void> {
  const label = `operation="${operation}"`
  return until(async () => (await metric('bff_relay_operations_total')).get(label) === count, `${count} ${operation}`)
}

await test('the first price of a stream is an answer, which a slow browser gets in its turn', async (t) => {
  const world = await slowWorld(t)
  const { market, slow, readUntil } = world
  slow.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
  slow.send({ ticks: 'R_1', subscribe: 1, req_id: 2 })
  await taken(world, 'ticks', 2)
  const request = await market.next('ticks')
  for (const quote of [10, 11, 12]) tick(request, quote, quote, 'id-1')
  reply(await market.askedBy(slow, { time: 1, req_id: 3 }), { time: 0 })
  t.same(await readUntil(3), [
    [1, 10],
    [2, 'AlreadySubscribed'],
    [3, 0],
  ])
  t.match(await slow.next(), { req_id: 1, tick: { quote: 12 } }, 'then the newest price')
})

await test('a slow browser gets nothing of a stream after the answer to its forget_all', async (t) => {
  const world = await slowWorld(t)
  const { market, slow, readUntil } = world
  slow.send({ ticks: ['R_1', 'R_2'], subscribe: 1, req_id: 1 })
  slow.send({ forget_all: 'ticks', req_id: 2 })
  slow.send({ time: 1, req_id: 3 })
  await taken(world, 'forget_all', 1)
  const [one, two] = [await market.next('ticks', 'R_1'), await market.next('ticks', 'R_2')]
  tick(one, 10, 10, 'id-1', 'R_1')
  tick(one, 11, 11, 'id-1', 'R_1')
  tick(two, 12, 12, 'id-2', 'R_2')
  // Requests wait for the answer to a forget_all.
  reply(await market.next('time'), { time: 0 })
  t.same(await readUntil(3), [
    [1, 11],
    [1, 12],
    [2, ['id-1', 'id-2']],
    [3, 0],
  ])
  t.same(await slow.rest(), [])
})

await test('a slow browser gets nothing of a stream after the answer to its forget', async (t) => {
  const world = await slowWorld(t)
  const { market, slow, readUntil } = world
  const request = await market.askedBy(slow, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  for (const quote of [10, 11]) tick(request, quote, quote, 'id-1')
  const other = await world.join()
  t.match(await other.ask({ ticks: 'R_1', subscribe: 1 }), { tick: { quote: 11 } }, 'the prices are there')
  slow.send({ forget: 'id-1', req_id: 2 })
  reply(await market.askedBy(slow, { time: 1, req_id: 3 }), { time: 0 })
  await readUntil(2)
  t.match(await slow.next(), { req_id: 3, time: 0 })
  t.same(await slow.rest(), [])
})

for (const [what, ticks, ended] of [
  ['stream whose id is named', 'R_1', { subscription: { id: 'id-1' } }],
  ['stream', 'R_1', {}],
] as const) {
  await test(`a slow browser gets the last price of a ${what} before the end of it, and nothing after`, async (t) => {
    const world = await slowWorld(t)
    const { market, slow, readUntil } = world
    const request = await market.askedBy(slow, { ticks, subscribe: 1, req_id: 1 })
    for (const quote of [10, 11, 12]) tick(request, quote, quote, 'id-1', 'R_1')
    reply(request, { ...ended, msg_type: 'tick', error: { code: 'MarketIsClosed', message: '' } })
    reply(await market.askedBy(slow, { time: 1, req_id: 3 }), { time: 0 })
    t.same(await readUntil(3), [
      [1, 10],
      [1, 12],
      [1, 'MarketIsClosed'],
      [3, 0],
    ])
    t.same(await slow.rest(), [])
  })
}

await test('the counters of what browsers have got never fall, however short the messages that replace others', async (t) => {
  const world = await slowWorld(t)
  const { market, metric, slow, readUntil } = world
  const request = await market.askedBy(slow, { ticks: 'R_1', subscribe: 1, req_id: 1 })
  const longer = (quote: number): void =>
    reply(request, { msg_type: 'tick', subscription: { id: 'id-1' }, tick: { quote }, padding: 'x'.repeat(50 - quote) })
  for (const quote of [1, 2]) longer(quote)
  const totals = async (): Promise<unknown[]> => {
    const names = ['bff_relay_messages_total', 'bff_relay_bytes_total']
    return Promise.all(names.map(async (name) => (await metric(name)).get('direction="to_browser"')))
  }
  const conflated = async (): Promise<unknown> => (await metric('bff_feed_conflated_messages_total')).get('')
  longer(3)
  await until(async () => (await conflated()) === 1, 'the second has given way')
  const before = await totals()
  for (let quote = 4; quote < 10; quote++) {
    longer(quote)
    await until(async () => (await conflated()) === quote - 2, 'another has given way')
    t.same(await totals(), before, 'what may still give way does not count')
  }
  reply(await market.askedBy(slow, { time: 1, req_id: 2 }), { time: 0 })
  t.same(await readUntil(2), [
    [1, 1],
    [2, 0],
  ])
  t.match(await slow.next(), { req_id: 1, tick: { quote: 9 } })
  const { received } = slow.client
  const bytes = received.reduce((sum, { data }) => sum + data.length, 0)
  t.same(await totals(), [received.length, bytes])
})

await test('a slow browser gets what follows its history before the answer to its forget, and nothing after', async (t) => {
  const world = await slowWorld(t)
  const { market, slow, readUntil } = world
  const asked = { ticks_history: 'R_1', subscribe: 1, end: 'latest' }
  const history = { msg_type: 'history', history: { prices: [99, 100], times: [99, 100] } }
  const other = await world.join()
  const request = await market.serve(other, asked, { ...history, subscription: { id: 'h' } })
  const fetch = await market.askedBy(slow, { ...asked, count: 2, req_id: 1 })
  for (const quote of [101, 102]) {
    tick(request, quote, quote, 'h')
    await other.next()
  }
  reply(fetch, history)
  await market.serve(other, { time: 1 }, { time: 0 })
  slow.send({ forget: 'h', req_id: 2 })
  t.same(await readUntil(2), [
    [1, undefined],
    [1, 102],
    [2, undefined],
  ])
  t.same(await slow.rest(), [])
})

await test('a slow browser gets the newest of long messages once it reads, without asking for anything', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const browser = await join()
  const request = await market.serve(browser, { ticks: 'R_1', subscribe: 1 }, price(1, 'id-1'))
  browser.client.socket.pause()
  let last = 1
  await until(async () => {
    tick(request, ++last, last, 'id-1', 'x'.repeat(100_000))
    return ((await metric('bff_feed_conflated_messages_total')).get('') ?? 0) > 3
  }, 'prices give way to newer ones')
  browser.client.socket.resume()
  let quote: unknown
  while (quote !== last) [quote] = quotes([await browser.next()])
  t.same(await browser.rest(), [], 'it is the last message')
})

await test('nothing more is read from a browser that does not read its answers, and it is closed with 4408', async (t) => {
  const { market, join, metric } = await feedWorld(t, {
    MAX_BUFFERED_BYTES: '200000',
    SLOW_CONSUMER_SECONDS: '1',
    FEED_CACHE_SECONDS: '60',
  })
  const browser = await join()
  await market.serve(browser, { active_symbols: 'brief', req_id: 1 }, { active_symbols: 'x'.repeat(100_000) })
  browser.client.socket.pause()
  for (let count = 0; count < 400; count++) browser.send({ active_symbols: 'brief', req_id: count })
  await until(async () => ((await metric('bff_relay_buffered_bytes')).get('') ?? 0) > 200_000)
  t.ok(((await metric('bff_relay_buffered_bytes')).get('') ?? Infinity) < 1_000_000)
  await until(async () => (await metric('bff_relay_endings_total')).get('kind="public",code="4408"') === 1)
  browser.client.socket.resume()
  t.same(await browser.client.closed, { code: 4408, reason: 'slow_consumer' })
})
