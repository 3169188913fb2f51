import { test } from 'tap'
import { type FeedWorld, feedWorld, price, quotes, reply, tick } from '../support/feed/world.ts'
import { Beats } from '../support/feed/beats.ts'
import { breakConnection } from '../support/feed/broken-connection.ts'

/** The messages of upstream that were for nobody. */
async function unattributed({ metric }: FeedWorld): Promise<unknown> {
  return (await metric('bff_feed_unattributed_messages_total')).get('')
}

/** A browser with living streams of R_1 and R_2. */
async function withTwoStreams({ join, market }: FeedWorld) {
  const browser = await join()
  const requests = []
  for (const symbol of ['R_1', 'R_2'] as const) {
    const request = await market.serve(browser, { ticks: symbol, subscribe: 1 }, price(1, `id-${symbol}`, symbol))
    requests.push(request)
  }
  const [first, second] = requests
  if (first === undefined || second === undefined) throw new Error('there are two')
  return { browser, first, second }
}

await test('what upstream sends of a forgotten stream is ignored until the forget is answered, and then forgotten again', async (t) => {
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const { market } = world
  const { browser, first, second } = await withTwoStreams(world)
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  const forget = await market.next('forget', 'id-R_1')
  for (const quote of [2, 3, 4]) tick(first, quote, quote, 'id-R_1', 'R_1')
  tick(second, 2, 2, 'id-R_2', 'R_2')
  t.match(await browser.next(), { tick: { symbol: 'R_2', quote: 2 } })
  t.equal(await unattributed(world), 0)
  for (let count = 0; count < 2; count++) reply(forget, { msg_type: 'forget', forget: 1 })
  tick(second, 3, 3, 'id-R_2', 'R_2')
  t.match(await browser.next(), { tick: { symbol: 'R_2', quote: 3 } })
  t.equal(await unattributed(world), 1, 'the second answer answers nothing')
  tick(first, 5, 5, 'id-R_1', 'R_1')
  const again = await market.next('forget', 'id-R_1')
  t.equal(await unattributed(world), 2)
  reply(again, { msg_type: 'forget', forget: 1 })
  t.same(await browser.rest(), [])
  t.equal(market.asked('forget').length, 2)
})

await test('a stream that upstream starts although it has refused the subscription is forgotten', async (t) => {
  const world = await feedWorld(t)
  const { market } = world
  const { browser, second } = await withTwoStreams(world)
  const error = { code: 'MarketIsClosed', message: '' }
  const request = await market.askedBy(browser, { ticks: 'R_3', subscribe: 1 })
  reply(request, { msg_type: 'tick', error })
  t.match(await browser.next(), { error })
  for (const quote of [1, 2]) tick(request, quote, quote, 'late', 'R_3')
  reply(await market.next('forget', 'late'), { msg_type: 'forget', forget: 1 })
  tick(second, 2, 2, 'id-R_2', 'R_2')
  t.same(quotes([await browser.next()]), [2])
  t.equal(await unattributed(world), 1, 'its first message')
  t.equal(market.asked('forget').length, 1)
})

await test('a forget that upstream has refused is repeated every ten seconds until upstream takes it', async (t) => {
  const beats = new Beats(t)
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const { market } = world
  const { browser, first, second } = await withTwoStreams(world)
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  for (let count = 1; count <= 2; count++) {
    reply(await market.next('forget', 'id-R_1'), { msg_type: 'forget', error: { code: 'RateLimit', message: '' } })
    tick(first, count, count, 'id-R_1', 'R_1')
    tick(second, count, count, 'id-R_2', 'R_2')
    t.match(await browser.next(), { tick: { symbol: 'R_2' } })
    beats.pass()
  }
  reply(await market.next('forget', 'id-R_1'), { msg_type: 'forget', forget: 1 })
  tick(second, 3, 3, 'id-R_2', 'R_2')
  t.match(await browser.next(), { tick: { symbol: 'R_2' } })
  t.equal(await unattributed(world), 0, 'meanwhile its prices are expected')
  for (let count = 1; count <= 2; count++) beats.pass(1, 0)
  t.equal(market.asked('forget').length, 3)
})

await test('a forget that upstream does not answer is given up, and repeated if upstream still sends the stream', async (t) => {
  const beats = new Beats(t)
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const { market } = world
  const { browser, first, second } = await withTwoStreams(world)
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  const unanswered = await market.next('forget', 'id-R_1')
  beats.pass()
  reply(unanswered, { msg_type: 'forget', forget: 1 })
  tick(first, 2, 2, 'id-R_1', 'R_1')
  reply(await market.next('forget', 'id-R_1'), { msg_type: 'forget', forget: 1 })
  tick(second, 2, 2, 'id-R_2', 'R_2')
  t.match(await browser.next(), { tick: { symbol: 'R_2', quote: 2 } })
  t.equal(await unattributed(world), 2, 'the late answer, and the price after it')
})

await test('a forget that upstream has refused is not repeated on another connection', async (t) => {
  const beats = new Beats(t)
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0', FEED_RECONNECT_SPREAD_SECONDS: '600' })
  const { market, join } = world
  const { browser, first, second } = await withTwoStreams(world)
  t.match(await browser.ask({ forget: 'id-R_1' }), { forget: 1 })
  const error = { code: 'RateLimit', message: '' }
  reply(await market.next('forget', 'id-R_1'), { msg_type: 'forget', error })
  tick(second, 2, 2, 'id-R_2', 'R_2')
  t.match(await browser.next(), { tick: { symbol: 'R_2' } }, 'the refusal has arrived')
  ;(await breakConnection(world, first.socket))()
  tick(await market.next('ticks', 'R_2'), 2, 2, 'new-R_2', 'R_2')
  beats.pass()
  const other = await join()
  other.send({ ticks: 'R_3', subscribe: 1 })
  t.ok((await market.next('ticks', 'R_3')).socket !== first.socket)
  t.equal(market.asked('forget').length, 1)
})

await test('an id that upstream has given to another stream is not forgotten for the sake of the first', async (t) => {
  const beats = new Beats(t)
  const world = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const { market, join } = world
  const { browser, first, second } = await withTwoStreams(world)

  await t.test('when a forget that upstream has refused is due again', async (t) => {
    const error = { code: 'Ended', message: '' }
    reply(first, { msg_type: 'tick', error, subscription: { id: 'id-R_1' } })
    t.match(await browser.next(), { error })
    const forget = await market.next('forget', 'id-R_1')
    reply(forget, { msg_type: 'forget', error: { code: 'RateLimit', message: '' } })
    tick(second, 2, 2, 'id-R_2', 'R_2')
    t.match(await browser.next(), { tick: { symbol: 'R_2' } }, 'the refusal has arrived')
    tick(await market.askedBy(browser, { ticks: 'R_1', subscribe: 1 }), 2, 2, 'id-R_1', 'R_1')
    t.match(await browser.next(), { tick: { quote: 2 } })
    beats.pass()
  })

  await t.test('when upstream sends a late price of the first', async (t) => {
    t.match(await browser.ask({ forget: 'id-R_2' }), { forget: 1 })
    reply(await market.next('forget', 'id-R_2'), { msg_type: 'forget', forget: 1 })
    tick(await market.askedBy(browser, { ticks: 'R_3', subscribe: 1 }), 2, 2, 'id-R_2', 'R_3')
    t.match(await browser.next(), { tick: { symbol: 'R_3', quote: 2 } })
    tick(second, 3, 3, 'id-R_2', 'R_2')
  })

  const other = await join()
  other.send({ ticks: 'R_4', subscribe: 1 })
  t.ok((await market.next('ticks', 'R_4')).socket === first.socket, 'whatever was sent before has arrived')
  t.equal(market.asked('forget').length, 2)
})
