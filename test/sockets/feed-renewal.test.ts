import { test } from 'tap'
import type { WebSocket } from 'ws'
import {
  type FeedBrowser,
  type FeedWorld,
  feedWorld,
  price,
  reply,
  tick,
  type UpstreamRequest,
} from '../support/feed/world.ts'
import { Beats } from '../support/feed/beats.ts'
import { breakConnection } from '../support/feed/broken-connection.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const SETTINGS = { FEED_RECONNECT_SPREAD_SECONDS: '600', FEED_LINGER_SECONDS: '3600' }
/** Less than the time after which a stream that is not answered keeps others waiting no more. */
const DEADLINE_MS = 9000

/** A browser with a living stream, by which it shows what the server has done on the connection of that stream. */
class Probe {
  readonly #market: FeedWorld['market']
  readonly #browser: FeedBrowser
  #request: UpstreamRequest
  #count = 0

  constructor(market: FeedWorld['market'], browser: FeedBrowser, request: UpstreamRequest) {
    this.#market = market
    this.#browser = browser
    this.#request = request
  }

  /** Resolves once the server has taken all that upstream has sent, and upstream all that the server has sent because of it. */
  async settled(): Promise<void> {
    tick(this.#request, ++this.#count)
    await this.#browser.next()
    const symbol = `PROBE_${this.#count}`
    this.#browser.send({ ticks: symbol, subscribe: 1 })
    const asked = (): UpstreamRequest | undefined =>
      this.#market.asked('ticks').find(({ message }) => message['ticks'] === symbol)
    await until(() => asked() !== undefined, symbol, DEADLINE_MS)
    this.#request = asked() ?? this.#request
    tick(this.#request, 1)
    await this.#browser.next()
  }
}

/** The requests for the single symbols A to Z on a connection, in their order. */
function renewals({ market }: FeedWorld, socket: WebSocket | undefined): UpstreamRequest[] {
  return market.asked('ticks').filter((each) => each.socket === socket && /^[A-Z]$/.test(String(each.message['ticks'])))
}

function symbolsOf(requests: readonly UpstreamRequest[]): string {
  return requests.map(({ message }) => message['ticks']).join('')
}

/** A world in which one browser has a living stream of each symbol. */
async function streaming(world: FeedWorld, symbols: string): Promise<WebSocket> {
  const { market, join } = world
  const browser = await join()
  let socket: WebSocket | undefined
  for (const symbol of symbols) {
    const request = await market.serve(browser, { ticks: symbol, subscribe: 1 }, price(1, `id-${symbol}`, symbol))
    socket = request.socket
  }
  if (socket === undefined) throw new Error('there is a symbol')
  return socket
}

/** A probe on the connection of these requests. */
async function probe({ market, join }: FeedWorld): Promise<Probe> {
  const browser = await join()
  browser.send({ ticks: 'PROBE', subscribe: 1 })
  const asked = (): UpstreamRequest | undefined =>
    market.asked('ticks').find(({ message }) => message['ticks'] === 'PROBE')
  await until(() => asked() !== undefined, 'the probe', DEADLINE_MS)
  const request = asked()
  if (request === undefined) throw new Error('it was there')
  tick(request, 0)
  await browser.next()
  return new Probe(market, browser, request)
}

function refuse(request: UpstreamRequest | undefined, code: string): void {
  if (request !== undefined) reply(request, { msg_type: 'tick', error: { code, message: 'of upstream' } })
}

await test('eight streams at a time are renewed, those that browsers wait for first', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market, join, upstream } = world
  const lost = await streaming(world, 'ABCDEFGHIJKL')
  const beats = new Beats(t)
  const connect = await breakConnection(world, lost)
  t.equal((await world.metric('bff_feed_upstream_sockets')).get(''), 0)
  const back = await join()
  back.send({ ticks: 'L', subscribe: 1 })
  await back.rest()
  connect()
  await until(() => market.sockets.length === 2, 'it is connected', DEADLINE_MS)
  const asked = (): UpstreamRequest[] => renewals(world, market.sockets[1])
  const control = await probe(world)
  t.equal(symbolsOf(asked()), 'LABCDEFG')
  t.equal((await world.metric('bff_feed_upstream_sockets')).get(''), 1)

  const [waitedFor, refused] = asked()
  if (waitedFor !== undefined) tick(waitedFor, 2, 2, 'id-L', 'L')
  t.match(await back.next(), { tick: { quote: 2 } })
  await control.settled()
  t.equal(symbolsOf(asked().slice(8)), 'H', 'one is answered')
  refuse(refused, 'MarketIsClosed')
  await control.settled()
  t.equal(symbolsOf(asked().slice(8)), 'HI', 'one is refused for good')
  beats.pass()
  await control.settled()
  t.equal(symbolsOf(asked().slice(8)), 'HIJK', 'the others do not wait for those that are not answered')
  t.equal(upstream.open, 1)
})

await test('while upstream refuses to renew streams, it is asked again after a pause that grows', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market } = world
  const connect = await breakConnection(world, await streaming(world, 'ABCDEFGHI'))
  t.intercept(Math, 'random', { value: () => 0 })
  const [first, second] = [new HeldTimers(t, 'setTimeout', 1000), new HeldTimers(t, 'setTimeout', 2000)]
  connect()
  const refusals = async (): Promise<unknown> => (await world.metric('bff_feed_refused_resubscriptions_total')).get('')
  const asked = (): UpstreamRequest[] => renewals(world, market.sockets[1])
  await until(() => asked().length === 8)
  for (const request of asked()) refuse(request, 'RateLimit')
  const control = await probe(world)
  await control.settled()
  t.equal(symbolsOf(asked()), 'ABCDEFGH', 'it is asked nothing more')
  t.equal(second.size, 0, 'there is one pause')

  for (const refused of [8, 1]) {
    t.equal(second.size, 0)
    const before = asked().length
    first.run()
    await until(() => asked().length === before + 8, 'the pause is over')
    const newest = asked().slice(-8)
    t.equal(symbolsOf(newest), 'ABCDEFGH')
    for (const request of newest.slice(0, refused)) refuse(request, 'RateLimit')
    await until(async () => (await refusals()) === before + refused)
  }
  t.equal(second.size, 1, 'the next pause is longer')

  const reconnect = await breakConnection(world, asked()[0]?.socket)
  t.equal(second.size, 0, 'it was about the connection before')
  reconnect()
  const again = (): UpstreamRequest[] => renewals(world, market.sockets[2])
  await until(() => again().length === 8)
  for (const request of again()) tick(request, 1, 1, `id-${symbolsOf([request])}`)
  await until(() => again().length === 9)
  refuse(again()[8], 'RateLimit')
  await until(async () => (await refusals()) === 18)
  first.run()
  await until(() => again().length === 10, 'upstream has taken some, so the pause is short again')
  t.equal(symbolsOf(again()), 'ABCDEFGHII')
})

await test('what upstream did not answer before a second loss makes no room on the connection after it', async (t) => {
  const world = await feedWorld(t, SETTINGS)
  const { market } = world
  const connect = await breakConnection(world, await streaming(world, 'ABCDEFGHIJ'))
  const beats = new Beats(t)
  connect()
  await until(() => renewals(world, market.sockets[1]).length === 8, 'eight are renewed', DEADLINE_MS)
  const reconnect = await breakConnection(world, market.sockets[1])
  reconnect()
  const asked = (): UpstreamRequest[] => renewals(world, market.sockets[2])
  await until(() => asked().length === 8, 'eight are renewed again', DEADLINE_MS)
  const control = await probe(world)
  beats.pass(1, 5000)
  await control.settled()
  t.equal(symbolsOf(asked()), 'ABCDEFGH')
  beats.pass(1, 5000)
  await control.settled()
  t.equal(symbolsOf(asked()), 'ABCDEFGHIJ')
})
