import { test } from 'tap'
import { type FeedWorld, feedWorld, price, reply } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

/** The values of metrics, by the name without `bff_feed_`. */
async function feedMetrics({ metric }: FeedWorld, ...names: string[]): Promise<Record<string, number | undefined>> {
  const values = names.map(async (name) => [name, (await metric(`bff_feed_${name}`)).get('')] as const)
  return Object.fromEntries(await Promise.all(values))
}

await test('the metrics of the feed tell what it holds, and how much it may', async (t) => {
  const world = await feedWorld(t, {
    FEED_MAX_SOCKETS: '4',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_SUBSCRIPTIONS: '8',
    FEED_MAX_OWN_SOCKETS: '3',
    FEED_LINGER_SECONDS: '0',
  })
  const { market, join, upstream } = world
  const held = () => feedMetrics(world, 'upstream_sockets', 'streams', 'taken_places', 'subscribers', 'own_sockets')
  t.same(await feedMetrics(world, 'stream_limit', 'own_socket_limit'), { stream_limit: 8, own_socket_limit: 3 })
  t.same(await held(), { upstream_sockets: 0, streams: 0, taken_places: 0, subscribers: 0, own_sockets: 0 })

  const [first, second] = [await join(), await join()]
  for (const symbol of ['R_1', 'R_2', 'R_3']) {
    await market.serve(first, { ticks: symbol, subscribe: 1 }, price(1, `id-${symbol}`, symbol))
    await second.ask({ ticks: symbol, subscribe: 1 })
  }
  t.same(await held(), { upstream_sockets: 2, streams: 3, taken_places: 3, subscribers: 6, own_sockets: 0 })
  await market.askedBy(first, { ticks: ['R_4', 'R_5'], subscribe: 1 })
  await market.askedBy(first, { time: 1 })
  await market.askedBy(second, { proposal: 1 })
  t.same(await held(), { upstream_sockets: 4, streams: 5, taken_places: 5, subscribers: 8, own_sockets: 1 })
  t.equal(upstream.open, 5)

  second.client.socket.close()
  await second.client.closed
  await first.ask({ forget: 'id-R_3' })
  await market.next('forget', 'id-R_3')
  await until(async () => (await held())['own_sockets'] === 0, 'the own socket is gone')
  t.match(await held(), { streams: 4, subscribers: 4 })

  // Upstream takes connections, and does not answer their handshakes.
  upstream.onUpgrade = (_request, socket) => void socket.resume()
  const retrying = () => feedMetrics(world, 'upstream_sockets', 'retrying_sockets')
  t.match(await retrying(), { retrying_sockets: 0 })
  for (const socket of market.sockets) socket.terminate()
  await until(async () => (await retrying())['upstream_sockets'] === 0, 'all are lost')
  t.same(await retrying(), { upstream_sockets: 0, retrying_sockets: 2 }, 'for streams, and for requests')
})

await test('bff_feed_cache_hits_total counts the requests that needed none upstream', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const hits = () => metric('bff_feed_cache_hits_total')
  const [first, second, third] = [await join(), await join(), await join()]
  await market.askedBy(first, { ticks: 'R_1', subscribe: 1 })
  t.equal((await hits()).size, 0)
  for (const browser of [second, third]) {
    browser.send({ ticks: 'R_1', subscribe: 1 })
    await browser.rest()
  }
  first.send({ ticks_history: 'R_1', subscribe: 1, end: 'latest' })
  const history = { msg_type: 'history', history: { prices: [1], times: [1] } }
  reply(await market.next('ticks_history'), { ...history, subscription: { id: 'h' } })
  await first.next()
  for (const browser of [second, third]) {
    browser.send({ ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 1 })
    await browser.rest()
  }
  reply(await market.next('ticks_history'), history)
  for (const browser of [second, third]) t.match(await browser.next(), { msg_type: 'history' })
  for (const browser of [first, second, third]) {
    browser.send({ contracts_list: 1 })
    await browser.rest()
  }
  t.same(Object.fromEntries(await hits()), {
    'operation="ticks"': 2,
    'operation="ticks_history"': 1,
    'operation="contracts_list"': 2,
  })
})

await test('the messages of browsers are counted by operation, and what goes to own sockets by direction', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const browser = await join()
  const proposal = '{"subscribe":1,"proposal":1}'
  for (const text of ['{"tim\\u0065":1}', proposal, '{"unknown":1}', 'no JSON']) browser.send(text)
  browser.client.socket.send(Buffer.from([1, 2, 3]))
  await until(() => market.requests.length === 5, 'upstream has them')
  t.same(Object.fromEntries(await metric('bff_relay_operations_total')), {
    'operation="time"': 1,
    'operation="proposal"': 1,
    'operation="other"': 2,
  })
  const own = [proposal, '{"unknown":1}', 'no JSON', '123']
  const toUpstream = async (name: string): Promise<unknown> => (await metric(name)).get('direction="to_upstream"')
  t.equal(await toUpstream('bff_relay_messages_total'), own.length)
  t.equal(await toUpstream('bff_relay_bytes_total'), own.join('').length)
})
