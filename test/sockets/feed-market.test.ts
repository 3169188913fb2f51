import { test, type Test } from 'tap'
import { MarketUpstream } from '../support/feed/market-upstream.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { MessageSocket } from '../support/browser/message-socket.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { testServer, type TestServer } from '../support/server/world.ts'

type Message = Record<string, unknown>

/** A browser that reads what its requests have brought, by `req_id`. */
class Page {
  readonly line: BrowserSocket

  private constructor(line: BrowserSocket) {
    this.line = line
  }

  static async open(t: Test, { port, url }: TestServer): Promise<Page> {
    const line = new BrowserSocket(`ws://127.0.0.1:${port}/ws/public`, { origin: url })
    t.teardown(() => line.socket.terminate())
    return new Page(await line.opened())
  }

  send(message: Message): void {
    this.line.socket.send(JSON.stringify(message))
  }

  /** Everything that has arrived for a request. */
  of(id: number): Message[] {
    return this.line.texts.map((text) => JSON.parse(text) as Message).filter(({ req_id: other }) => other === id)
  }

  /** Resolves with what has arrived for a request once there are so many messages. */
  async got(id: number, count: number): Promise<Message[]> {
    await until(() => this.of(id).length >= count, `${count} messages for request ${id}`)
    return this.of(id)
  }
}

async function worldOf(t: Test): Promise<{ upstream: MarketUpstream; server: TestServer }> {
  const upstream = await MarketUpstream.start(t, 1)
  const server = await testServer(t, {
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: upstream.wsUrl,
    PUBLIC_FEED: 'shared',
    FEED_LINGER_SECONDS: '1',
  })
  return { upstream, server }
}

await test('PUBLIC_FEED=shared: an upstream of another make gets one request for many browsers, without their ids', async (t) => {
  const { upstream, server } = await worldOf(t)
  const pages = await Promise.all(Array.from({ length: 10 }, () => Page.open(t, server)))
  const requests: Message[] = [
    { ticks: 'R_100', subscribe: 1 },
    { ticks_history: 'R_50', end: 'latest', count: 3, style: 'candles', subscribe: 1 },
    { active_symbols: 'brief' },
    { contracts_for: 'R_10' },
  ]
  for (const [at, page] of pages.entries())
    for (const [index, request] of requests.entries())
      page.send({ ...request, req_id: 70_000 + index, passthrough: { secret: `of page ${at}` } })
  for (const [at, page] of pages.entries())
    for (const index of requests.keys())
      t.match((await page.got(70_000 + index, 1))[0], { passthrough: { secret: `of page ${at}` } })
  t.match(await upstream.state(), { connections: { length: 2 } }, 'one connection for streams, one for the rest')
  const asked = (await upstream.log()).map(([, text]) => text ?? '')
  t.notMatch(asked.join('\n'), /passthrough|secret|7000/)
  for (const name of ['"ticks"', '"active_symbols"', '"contracts_for"'])
    t.equal(asked.filter((text) => text.includes(name)).length, 1, name)
  await upstream.emit(['R_100', 'R_50'], 3)
  for (const page of pages) {
    t.equal((await page.got(70_000, 4)).length, 4)
    t.equal((await page.got(70_001, 4)).length, 4)
  }
})

await test('PUBLIC_FEED=shared: the end of a symbol reaches all who have its stream, who may then subscribe again', async (t) => {
  const { upstream, server } = await worldOf(t)
  const pages = [await Page.open(t, server), await Page.open(t, server)]
  for (const page of pages) {
    page.send({ ticks: 'R_75', subscribe: 1, req_id: 5 })
    await page.got(5, 1)
  }
  await upstream.order({ do: 'end', symbol: 'R_75' })
  for (const page of pages) t.match((await page.got(5, 2))[1], { error: { code: 'MarketIsClosed' }, msg_type: 'tick' })
  pages[0]?.send({ ticks: 'R_75', subscribe: 1, req_id: 6 })
  await pages[0]?.got(6, 1)
  await upstream.emit(['R_75'])
  t.match((await pages[0]?.got(6, 2))?.[1], { tick: { symbol: 'R_75' } })
  t.equal(pages[1]?.of(5).length, 2, 'whoever has not, gets nothing')
})

await test('PUBLIC_FEED=shared: what cannot be attributed reaches nobody, and does no harm', async (t) => {
  const { upstream, server } = await worldOf(t)
  const [page, other] = [await Page.open(t, server), await Page.open(t, server)]
  page.send({ time: 1, req_id: 1 })
  await page.got(1, 1)
  await upstream.order({ do: 'omit', count: 1 })
  page.send({ time: 1, req_id: 2 })
  await until(async () => (await upstream.state()).received === 2, 'upstream has the second request')
  const strays = [
    '{"msg_type":"tick","req_id":999999,"tick":{"quote":1}}',
    '{"msg_type":"tick","req_id":"1","tick":{"quote":1}}',
    '{"msg_type":"time","time":5}',
    '{"req_id":777,"req_id":778}',
    '[1]',
    '{',
    '',
    `{"req_id":${'9'.repeat(400)}}`,
  ]
  for (const text of strays) await upstream.order({ do: 'say', text })
  other.send({ time: 1, req_id: 3 })
  t.match(await other.got(3, 1), [{ msg_type: 'time', req_id: 3 }])
  t.equal(other.line.received.length, 1)
  t.match(await page.got(2, 1), [{ msg_type: 'time', echo_req: { time: 1, req_id: 2 } }], 'echo_req tells whose it is')
  t.equal(page.line.received.length, 2)
})

await test('the upstream of these tests holds back, loses and refuses connections when it is told to', async (t) => {
  const upstream = await MarketUpstream.start(t, 2)
  const connect = async (): Promise<MessageSocket> => {
    const line = await MessageSocket.connect(upstream.wsUrl)
    t.teardown(() => line.socket.terminate())
    return line
  }
  const line = await connect()
  t.match(await line.ask({ ticks: 'R_10', subscribe: 1 }), { subscription: { id: String } })
  let seen = 0
  line.socket.on('message', () => seen++)
  await upstream.order({ do: 'flow', on: false })
  await upstream.emit(['R_10'])
  line.socket.ping()
  await nextEvent(line.socket, 'pong')
  t.equal(seen, 0, 'a held-back price is overtaken by a pong')
  const held = line.next('tick')
  await upstream.order({ do: 'flow', on: true })
  t.match(await held, { tick: { symbol: 'R_10' } })

  await upstream.order({ do: 'refuse', every: 2 })
  t.match(await line.ask({ ticks: 'R_25', subscribe: 1 }), { tick: { symbol: 'R_25' } })
  t.equal(await line.refusal({ ticks: 'R_50', subscribe: 1 }), 'RateLimit')

  const closed = nextEvent(line.socket, 'close')
  await upstream.order({ do: 'handshakes', on: false })
  await upstream.order({ do: 'lose', how: 'close' })
  t.equal((await closed)[0], 1001)
  t.equal(await new BrowserSocket(upstream.wsUrl, {}).refusedWith(), 503)
  await upstream.order({ do: 'handshakes', on: true })
  const third = await connect()
  const reset = nextEvent(third.socket, 'close')
  await upstream.order({ do: 'lose', how: 'reset' })
  t.equal((await reset)[0], 1006)

  const silent = await connect()
  await upstream.order({ do: 'lose', how: 'silent' })
  silent.socket.send('{"time":1}')
  const { received } = await upstream.state()
  const other = await connect()
  await other.ask({ time: 1 })
  t.equal((await upstream.state()).received, received + 1, 'what is sent to a silent connection is not read')
})
