import { test, type Test } from 'tap'
import { type FeedBrowser, type FeedWorld, feedWorld, LOST, price, quotes, reply, tick } from '../support/feed/world.ts'
import { breakConnection, holdConnection } from '../support/feed/broken-connection.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const PATIENCE_MS = 5000

/** What a browser can wait for, each on a connection of its own. */
const ASKED = { 'a stream': { ticks: 'R_1', subscribe: 1 }, 'an answer': { time: 1 } } as const
type Awaited = keyof typeof ASKED

/** A world in which the closings of lost browsers, and the patience with upstream, end when the test says so. */
async function departingWorld(t: Test): Promise<FeedWorld & { patience: HeldTimers; closings: HeldTimers }> {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '600' })
  t.intercept(Math, 'random', { value: () => 0.5 })
  const patience = new HeldTimers(t, 'setTimeout', PATIENCE_MS)
  return { ...world, patience, closings: new HeldTimers(t, 'setTimeout', 300_000) }
}

/** A browser that has asked, and sees that it was read. */
async function asking({ join }: FeedWorld, what: Awaited): Promise<FeedBrowser> {
  const browser = await join()
  browser.send(ASKED[what])
  await browser.rest()
  return browser
}

/** A browser that has a living stream, or waits for an answer. */
async function losing(world: FeedWorld, what: Awaited): Promise<FeedBrowser> {
  const browser = await asking(world, what)
  // A pong and a tick.
  if (what === 'a stream') await browser.client.count(2)
  return browser
}

/** Answers all subscriptions from now on. */
function answerTicks({ market }: FeedWorld): void {
  market.auto = ({ ticks }) => (ticks === undefined ? undefined : price(1))
}

for (const what of Object.keys(ASKED) as Awaited[]) {
  await test(`browsers whose connection for ${what} is lost are closed once it is back, or after 5 seconds`, async (t) => {
    const world = await departingWorld(t)
    const { market, patience, closings } = world
    const operation = what === 'a stream' ? 'ticks' : 'time'
    answerTicks(world)
    const browsers = [await losing(world, what), await losing(world, what)]
    await until(() => market.asked(operation).length > 0)
    const connect = await breakConnection(world, market.asked(operation)[0]?.socket)
    t.same([patience.size, closings.size], [1, 0], 'they wait')
    connect()
    await until(() => closings.size === 2, 'it is back')
    t.equal(patience.size, 0)
    closings.run()
    for (const { client } of browsers) t.same(await client.closed, LOST)

    const another = await losing(world, what)
    await until(() => market.asked(operation).at(-1)?.socket === market.sockets.at(-1))
    await breakConnection(world, market.sockets.at(-1))
    t.same([patience.size, closings.size], [1, 0])
    patience.run()
    t.same([patience.size, closings.size], [0, 1], 'nobody else is closed')
    closings.run()
    t.same(await another.client.closed, LOST)
  })

  await test(`a browser that has waited 5 seconds for a connection for ${what} is closed, and not asked for`, async (t) => {
    const world = await departingWorld(t)
    const { market, patience, closings, join } = world
    const waiting = holdConnection(world)
    const late = await asking(world, what)
    const connect = await waiting()
    t.same([patience.size, closings.size], [1, 0])
    patience.run()
    t.same([patience.size, closings.size], [0, 1])
    closings.run()
    t.same(await late.client.closed, LOST)
    connect()
    const other = await join()
    other.send(ASKED[what])
    const request = await market.next(what === 'a stream' ? 'ticks' : 'time')
    if (what === 'a stream') tick(request, 1)
    else reply(request, { time: 1 })
    await other.next()
    t.equal(market.requests.length, 1)
  })
}

await test('a browser whose connections come in time is not closed later', async (t) => {
  const world = await departingWorld(t)
  const { market, patience, closings } = world
  answerTicks(world)
  const connect = holdConnection(world)
  const browser = await asking(world, 'a stream')
  ;(await connect())()
  t.match(await browser.next(), { tick: { quote: 1 } })
  const connectAgain = holdConnection(world)
  browser.send(ASKED['an answer'])
  ;(await connectAgain())()
  reply(await market.next('time'), { time: 1 })
  t.match(await browser.next(), { time: 1 })
  t.equal(patience.size, 0)
  patience.run()
  t.equal(closings.size, 0)
  const [request] = market.asked('ticks')
  if (request !== undefined) tick(request, 2)
  t.same(quotes(await browser.rest()), [2])
})
