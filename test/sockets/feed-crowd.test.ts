import type { Socket } from 'node:net'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { type FeedBrowser, feedWorld, LOST, price, tick } from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** `npm run test:feed` has 2,000. */
const CROWD = Number(process.env['CROWD'] ?? 200)
const JOIN_AT_ONCE = 100
const TICKS = 100
/** Above FEED_CONFLATE_BYTES: from here on only the newest price is kept for a browser. */
const SLOW_BYTES = 100_000
const READ_MS = 100
const BYTES_PER_READ = 102

/** Has a browser read 1 KB/s from here on. @returns what ends that */
function readSlowly({ client }: FeedBrowser): () => void {
  const { _socket: wire } = client.socket as WebSocket & { readonly _socket: Socket }
  wire.pause()
  const timer = setInterval(() => wire.read(BYTES_PER_READ), READ_MS)
  return () => {
    clearInterval(timer)
    wire.resume()
  }
}

/** A crowd of browsers, which does not come all at once. */
async function joined(join: () => Promise<FeedBrowser>): Promise<FeedBrowser[]> {
  const crowd: FeedBrowser[] = []
  while (crowd.length < CROWD) crowd.push(...(await Promise.all(Array.from({ length: JOIN_AT_ONCE }, join))))
  return crowd
}

/** The prices that a browser has. */
function quotes({ client }: FeedBrowser): number[] {
  return client.texts.flatMap((text) => {
    const { tick } = JSON.parse(text) as { tick?: { quote: number } }
    return tick === undefined ? [] : [tick.quote]
  })
}

await test(`a browser that reads 1 KB/s among ${CROWD} that read well delays nobody, and keeps its connection`, async (t) => {
  const { market, join, metric } = await feedWorld(t, {
    FEED_CACHE_SECONDS: '60',
    MAX_BUFFERED_BYTES: '16777216',
    MAX_PUBLIC_RELAYS_PER_IP: '10000',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
  })
  const slow = await join()
  const request = await market.serve(slow, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(0))
  await market.serve(slow, { active_symbols: 'brief', req_id: 2 }, { active_symbols: 'x'.repeat(100_000) })
  const readWell = readSlowly(slow)
  const buffered = async (): Promise<number> => (await metric('bff_relay_buffered_bytes')).get('') ?? 0
  await until(async () => {
    for (let count = 0; count < 10; count++) slow.send({ active_symbols: 'brief', req_id: 2 })
    return (await buffered()) > SLOW_BYTES
  }, 'more waits for the slow browser than the network takes')
  const before = await buffered()
  const crowd = await joined(join)
  for (const browser of crowd) browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
  await Promise.all(crowd.map((browser) => browser.next()))
  for (let quote = 1; quote <= TICKS; quote++) {
    tick(request, quote, quote)
    await crowd[0]?.next()
  }
  const expected = Array.from({ length: TICKS + 1 }, (_, quote) => quote)
  await until(() => crowd.every(({ client }) => client.received.length === expected.length), 'all have all prices')
  t.same(new Set(crowd.map((browser) => quotes(browser).join(' '))), new Set([expected.join(' ')]))
  t.ok((await buffered()) <= before + SLOW_BYTES, 'no more is kept for the slow browser')
  t.equal(slow.client.socket.readyState, slow.client.socket.OPEN)
  readWell()
  await until(() => quotes(slow).at(-1) === TICKS, 'it has the newest price once it reads')
  t.ok(quotes(slow).length < expected.length, 'without those that were replaced')
})

await test(`of ${CROWD} browsers on two connections, those of the frozen one are closed, and the others notice nothing`, async (t) => {
  const seconds = new HeldTimers(t, 'setInterval', 1000)
  const { market, join } = await feedWorld(t, {
    FEED_SUBSCRIPTIONS_PER_SOCKET: '1',
    FEED_RECONNECT_SPREAD_SECONDS: '1',
    MAX_PUBLIC_RELAYS_PER_IP: '10000',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
  })
  market.auto = ({ ping }) => (ping === undefined ? undefined : { ping: 'pong' })
  const crowd = await joined(join)
  const halves = [crowd.slice(0, CROWD / 2), crowd.slice(CROWD / 2)]
  const requests = []
  for (const [half, browsers] of halves.entries()) {
    for (const browser of browsers) browser.send({ ticks: `R_${half}`, subscribe: 1, req_id: 1 })
    const request = await market.next('ticks', `R_${half}`)
    tick(request, 0, 0, `id-${half}`, `R_${half}`)
    await Promise.all(browsers.map((browser) => browser.next()))
    requests.push(request)
  }
  const [frozen, others] = halves
  const [request, alive] = requests
  if (frozen === undefined || others === undefined || request === undefined || alive === undefined) throw new Error()
  request.socket.pause()
  for (let second = 1; second <= 16; second++) {
    seconds.run()
    tick(alive, second, second, 'id-1', 'R_1')
    for (const browser of frozen) browser.send({ ping: 1, req_id: 2 })
    const pongs = await Promise.all(others.map(async (browser) => (await browser.next(), browser.ask({ ping: 1 }))))
    t.ok(pongs.every(({ ping }) => ping === 'pong'))
  }
  const closes = await Promise.all(frozen.map(({ client }) => client.closed))
  t.ok(closes.every(({ code, reason }) => code === LOST.code && reason === LOST.reason))
  t.ok(others.every(({ client }) => client.socket.readyState === client.socket.OPEN))
})
