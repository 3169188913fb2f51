import type { Socket } from 'node:net'
import { test } from 'tap'
import { measuredServer } from '../support/server/measured-server.ts'
import { until } from '../support/time/until.ts'

const MIB = 1_048_576
/** `npm run test:feed` takes more. */
const BROWSERS = Number(process.env['MEMORY_BROWSERS'] ?? 4)
/** Browsers where all of them together must be many. */
const MANY = 8
const SAMPLES = 3
/** Requests of a browser that upstream answers once. */
const EQUAL = 150
/** Different requests of a browser, as many as FEED_REQUESTS_PER_MINUTE. */
const REQUESTS = 60
/** Browsers with a history each. */
const HISTORIES = 40
/** Of nearly 4 KiB, the longest that the feed interprets. Parsed, it takes thirty times as much. */
const FAT = `[${Array.from({ length: 1270 }, () => '{}').join(',')}]`
/** Counts requests that nobody else sends. */
let different = 0

for (const [what, count, request] of [
  ['equal subscriptions', 400, () => `{"ticks":"R_100","subscribe":1,"passthrough":{"a":${FAT}}}`],
  ['equal histories', 400, () => `{"ticks_history":"R_100","subscribe":1,"a":${FAT}}`],
  [
    'different histories',
    100,
    (index: number) =>
      `{"ticks_history":"R_100","subscribe":1,"style":"candles","granularity":${index + 1},"passthrough":{"a":${FAT}}}`,
  ],
  ['different requests', 100, () => `{"contracts_for":${FAT},"a":${++different}}`],
] as const) {
  await test(`PUBLIC_FEED=shared: ${what} that wait for upstream cost little more than MAX_BUFFERED_BYTES a browser`, async (t) => {
    const settings = { PUBLIC_FEED: 'shared', FEED_REQUESTS_PER_MINUTE: '1000', PUBLIC_HANDSHAKES_PER_MINUTE: '0' }
    // Upstream never answers.
    const { usedBytes, open } = await measuredServer(t, settings)
    const clients = await open(BROWSERS)
    const before = await usedBytes()
    for (const { socket } of clients) for (let index = 0; index < count; index++) socket.send(request(index))
    // Meanwhile all that is read has been parsed, and what that took is gone.
    let used = 0
    for (let sample = 0; sample < SAMPLES; sample++) used = (await usedBytes()) - before
    t.ok(used < 3 * BROWSERS * MIB, `${Math.round(used / BROWSERS / 1024)} KiB a browser`)
  })
}

for (const [which, bytes, waitingBytes, withinMib, isFollowed, idOf] of [
  // No two of these begin alike.
  ['of different requests', MIB / 4, MIB / 8, 3, false, (browser: number, index: number) => browser * EQUAL + index],
  // Upstream sends another message in one piece with it.
  ['of equal requests, read together with another message', 40_000, 10_000, 1, true, () => 1],
] as const) {
  await test(`PUBLIC_FEED=shared: an answer that waits for a browser many times over is in memory once: ${which}`, async (t) => {
    const { upstream, usedBytes, memory, open } = await measuredServer(t, { PUBLIC_FEED: 'shared' })
    const asked: (() => void)[] = []
    upstream.onSocket = (socket) => {
      const { _socket: connection } = socket as unknown as { _socket: Socket }
      socket.on('message', (data: Buffer) => {
        const { req_id } = JSON.parse(data.toString()) as { req_id: number }
        asked.push(() => {
          connection.cork()
          socket.send(JSON.stringify({ req_id, active_symbols: 'x'.repeat(bytes) }))
          if (isFollowed) socket.send(JSON.stringify({ time: 1 }))
          connection.uncork()
        })
      })
    }
    const clients = await open(BROWSERS)
    for (const [browser, { socket }] of clients.entries()) {
      for (let index = 0; index < EQUAL; index++) {
        socket.send(`{"active_symbols":"brief","req_id":${idOf(browser, index)}}`)
      }
      socket.send('{"ping":1}')
    }
    // The answer to the ping: everything before it has been read.
    for (const client of clients) await client.count(1)
    for (const { socket } of clients) socket.pause()
    const before = await usedBytes()
    t.equal(asked.length, 1)
    for (const answer of asked) answer()
    await until(async () => (await memory()).buffered > BROWSERS * EQUAL * waitingBytes, 'the answers wait')
    const used = (await usedBytes()) - before
    t.ok(used < withinMib * BROWSERS * MIB, `${Math.round(used / BROWSERS / 1024)} KiB a browser`)
    for (const { socket } of clients) socket.resume()
    for (const client of clients) {
      const received = await client.count(1 + EQUAL)
      t.ok(received.slice(1).every(({ data }) => data.length > bytes))
    }
  })
}

await test('PUBLIC_FEED=shared: a browser that reads none of its answers is sent no more than a few of them', async (t) => {
  const settings = { PUBLIC_FEED: 'shared', SLOW_CONSUMER_SECONDS: '60' }
  const { upstream, usedBytes, memory, open } = await measuredServer(t, settings)
  const padding = 'x'.repeat(MIB / 4)
  upstream.onSocket = (socket) =>
    socket.on('message', (data: Buffer) => {
      const { req_id } = JSON.parse(data.toString()) as { readonly req_id: number }
      const subscription = { id: `h${req_id}` }
      socket.send(JSON.stringify({ req_id, msg_type: 'candles', candles: [], subscription, padding }))
    })
  const clients = await open(BROWSERS)
  for (const { socket } of clients) socket.pause()
  const before = await usedBytes()
  for (const { socket } of clients) {
    for (let count = 0; count < REQUESTS / 2; count++) {
      socket.send(`{"ticks_history":"R_1","style":"candles","end":"latest","count":${++different}}`)
      socket.send(`{"ticks_history":"R_1","style":"candles","granularity":${++different},"subscribe":1}`)
    }
  }
  await until(async () => (await memory()).buffered > BROWSERS * MIB, 'answers wait')
  let used = 0
  for (let sample = 0; sample < SAMPLES; sample++) used = Math.max(used, (await usedBytes()) - before)
  t.ok(used < 6 * BROWSERS * MIB, `${Math.round(used / BROWSERS / 1024)} KiB a browser`)
  for (const { socket } of clients) socket.resume()
  for (const client of clients) t.equal((await client.count(REQUESTS)).length, REQUESTS)
})

await test('PUBLIC_FEED=shared: short answers to long requests take little more than 16 MiB when they are kept', async (t) => {
  const settings = { PUBLIC_FEED: 'shared', FEED_REQUESTS_PER_MINUTE: '1000', FEED_CACHE_SECONDS: '3600' }
  const { upstream, usedBytes, open } = await measuredServer(t, settings)
  upstream.onSocket = (socket) =>
    socket.on('message', (data: Buffer) => {
      const { req_id } = JSON.parse(data.toString()) as { readonly req_id: number }
      socket.send(JSON.stringify({ req_id, msg_type: 'trading_times', trading_times: {} }))
    })
  const clients = await open(MANY)
  const before = await usedBytes()
  for (const { socket } of clients) {
    for (let index = 0; index < EQUAL; index++) {
      const request = { trading_times: `${++different}` }
      socket.send(JSON.stringify({ ...request, a: 'x'.repeat(3900) }))
      // Whoever asks the same later gets an answer that begins otherwise.
      socket.send(JSON.stringify({ a: 'x'.repeat(3900), ...request, passthrough: {} }))
    }
  }
  for (const client of clients) await client.count(2 * EQUAL)
  const used = (await usedBytes()) - before
  t.ok(used < 24 * MIB, `${Math.round(used / 1024)} KiB`)
})

await test('PUBLIC_FEED=shared: short requests that are kept cost little, whatever else is answered meanwhile', async (t) => {
  const { usedBytes, open } = await measuredServer(t, { PUBLIC_FEED: 'shared' })
  const clients = await open(BROWSERS)
  const before = await usedBytes()
  for (let index = 0; index < 100; index++) {
    for (const { socket } of clients) {
      socket.send(`{"ticks":"S${index}","subscribe":1,"req_id":${++different}}`)
      socket.send(`{"ping":1,"passthrough":{"a":${FAT}}}`)
    }
  }
  for (const client of clients) await client.count(100)
  const used = (await usedBytes()) - before
  t.ok(used < BROWSERS * MIB, `${Math.round(used / BROWSERS / 1024)} KiB a browser`)
})

await test('PUBLIC_FEED=shared: short answers that wait for a browser cost little, whatever others are sent meanwhile', async (t) => {
  const { upstream, usedBytes, memory, open } = await measuredServer(t, { PUBLIC_FEED: 'shared' })
  upstream.onSocket = (socket) =>
    socket.on('message', (data: Buffer) => {
      const { req_id } = JSON.parse(data.toString()) as { readonly req_id: number }
      socket.send(JSON.stringify({ req_id, active_symbols: 'x'.repeat(MIB / 4) }))
    })
  const [slow, ...others] = await open(MANY)
  slow?.socket.pause()
  await until(async () => {
    slow?.socket.send('{"active_symbols":"brief"}')
    return (await memory()).buffered > 0
  }, 'an answer waits')
  const before = await usedBytes()
  for (let index = 0; index < EQUAL; index++) {
    slow?.socket.send('{"ping":1}')
    for (const other of others) other.socket.send(`{"ping":1,"passthrough":{"a":${FAT}}}`)
    await Promise.all(others.map((other) => other.count(index + 1)))
  }
  const used = (await usedBytes()) - before
  t.ok(used < 8 * MIB, `${Math.round(used / 1024)} KiB`)
})

for (const what of ['who has left', 'who stays']) {
  await test(`PUBLIC_FEED=shared: a history that is ahead of its stream is not kept for a browser ${what}`, async (t) => {
    const { upstream, usedBytes, open } = await measuredServer(t, { PUBLIC_FEED: 'shared' })
    // Whoever stays needs the prices of the last second, to see where the stream goes on.
    const prices = Array.from({ length: what === 'who stays' ? 1 : 20_000 }, (_, index) => index)
    const history = { history: { prices, times: prices.map(() => 100) }, padding: 'x'.repeat(MIB / 2) }
    upstream.onSocket = (socket) => {
      socket.on('message', (data: Buffer) => {
        const { req_id, count } = JSON.parse(data.toString()) as { readonly req_id: number; readonly count?: number }
        // The stream begins with an old history, and nothing is traded any more.
        const answer = count === undefined ? { history: { prices: [1], times: [50] } } : history
        socket.send(JSON.stringify({ ...answer, msg_type: 'history', subscription: { id: 'h' }, req_id }))
      })
    }
    const [first, ...others] = await open(1 + HISTORIES)
    first?.socket.send('{"ticks_history":"R_1","subscribe":1,"end":50}')
    await first?.count(1)
    const before = await usedBytes()
    for (const [index, other] of others.entries()) {
      other.socket.send(`{"ticks_history":"R_1","subscribe":1,"end":"latest","count":${index + 1}}`)
      await other.count(1)
      if (what === 'who has left') other.socket.terminate()
    }
    // Some are kept for a moment, for others who ask the same.
    await until(async () => (await usedBytes()) - before < 4 * MIB, 'the histories are gone')
  })
}
