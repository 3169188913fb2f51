import { test } from 'tap'
import { feedWorld, reply, tick, type UpstreamRequest, quotes } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

await test('a slow browser gets the newest message of each stream, and every answer', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_CONFLATE_BYTES: '65536', SLOW_CONSUMER_SECONDS: '3600' })
  const [slow, fast] = [await join(), await join()]
  const requests: { symbol: string; request: UpstreamRequest }[] = []
  for (const symbol of ['A', 'B']) {
    const request = await market.askedBy(slow, { ticks: symbol, subscribe: 1, req_id: symbol.charCodeAt(0) })
    requests.push({ symbol, request })
    tick(request, 0, 0, `id-${symbol}`, symbol)
    await slow.next()
    await fast.ask({ ticks: symbol, subscribe: 1 })
  }
  slow.client.socket.pause()
  const padding = 'x'.repeat(50_000)
  let sent = 0
  const conflated = async (): Promise<number> => (await metric('bff_feed_conflated_messages_total')).get('') ?? 0
  await until(async () => {
    sent++
    for (const { request, symbol } of requests) {
      const subscription = { id: `id-${symbol}` }
      reply(request, { msg_type: 'tick', subscription, tick: { quote: sent, symbol, padding } })
    }
    await fast.next()
    await fast.next()
    return (await conflated()) > 20
  })
  t.ok(((await metric('bff_relay_buffered_bytes')).get('') ?? Infinity) < 400_000)
  // An answer is not conflated, and comes after what was sent before it.
  slow.send({ forget: 'id-B', req_id: 1 })
  slow.client.socket.resume()
  const got = await (async () => {
    const all = []
    for (;;) {
      const message = await slow.next()
      if (message['req_id'] === 1) return all
      all.push(message)
    }
  })()
  const quotesOf = (symbol: string): number[] =>
    got.flatMap((message) => {
      const { symbol: of, quote } = message['tick'] as { symbol: string; quote: number }
      return of === symbol ? [quote] : []
    })
  for (const { symbol } of requests) {
    const quotes = quotesOf(symbol)
    t.ok(
      quotes.every((quote, index) => index === 0 || quote > (quotes[index - 1] ?? 0)),
      'in order, none twice',
    )
    t.ok(quotes.length < sent, `${quotes.length} of ${sent}`)
  }
  const last = await (async () => {
    const seen = quotesOf('A').at(-1)
    return seen === sent ? seen : ((await slow.next())['tick'] as { quote: number }).quote
  })()
  t.equal(last, sent, 'the newest arrives')
  for (const { request, symbol } of requests) tick(request, sent + 1, sent + 1, `id-${symbol}`, symbol)
  t.same(quotes(await slow.rest()), [sent + 1], 'and then everything again')
  await fast.rest()
  const received = [slow, fast].flatMap(({ client }) => client.received)
  const toBrowsers = async (name: string): Promise<unknown> => (await metric(name)).get('direction="to_browser"')
  t.equal(await toBrowsers('bff_relay_messages_total'), received.length, 'what gave way does not count')
  t.equal(
    await toBrowsers('bff_relay_bytes_total'),
    received.reduce((sum, { data }) => sum + data.length, 0),
  )
})
