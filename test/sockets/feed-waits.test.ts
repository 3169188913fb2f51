import { test } from 'tap'
import { Beats } from '../support/feed/beats.ts'
import { CacheQuota } from '../../src/sockets/feed/streams/shared-answer.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { feedWorld, history, quotes, reply, tick } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

/** How long a history on its way is shared, and how long any other answer. */
const HISTORY_MS = 30_000

await test('a history that arrives so late that messages since then are gone is asked for again', async (t) => {
  const pass = clockAhead(t)
  const { market, join } = await feedWorld(t)
  const [first, second, third] = [await join(), await join(), await join()]
  const request = await market.serve(
    first,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { ...history(100), subscription: { id: 'h' } },
  )
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 }
  const late = await market.askedBy(second, { ...wanted, req_id: 2 })
  pass(HISTORY_MS)
  const all = Array.from({ length: 200 }, (_, index) => 101 + index)
  for (const epoch of all) {
    tick(request, epoch, epoch, 'h')
    await first.next()
  }
  const again = await market.askedBy(third, { ...wanted, req_id: 3 })
  reply(late, history(100))
  reply(again, history(290))
  for (const [browser, req_id] of [
    [second, 2],
    [third, 3],
  ] as const) {
    t.match(await browser.next(), { req_id, ...history(290) })
    t.same(quotes(await browser.rest()), all.slice(190))
  }
})

await test('browsers whose late history a limit forbids to ask for again get an error each, with their own req_id', async (t) => {
  const pass = clockAhead(t)
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '1' })
  const [first, second, third] = [await join(), await join(), await join()]
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest' }
  const request = await market.serve(first, wanted, { ...history(100), subscription: { id: 'h' } })
  await market.serve(third, { time: 1 }, { time: 1 })
  const late = await market.askedBy(second, { ...wanted, count: 2, req_id: 2 })
  third.send({ ...wanted, count: 2, req_id: 3 })
  await third.rest()
  pass(HISTORY_MS)
  for (let epoch = 101; epoch <= 300; epoch++) {
    tick(request, epoch, epoch, 'h')
    await first.next()
  }
  reply(late, history(100))
  for (const [browser, req_id] of [
    [second, 2],
    [third, 3],
  ] as const) {
    t.match(await browser.next(), { req_id, echo_req: { req_id }, error: { code: 'RateLimit' } })
  }
})

await test('a history that takes the place of another one is kept for its own time', async (t) => {
  const pass = clockAhead(t)
  const overs: (() => void)[] = []
  t.intercept(CacheQuota.prototype, 'keep', {
    value: (_bytes: number, _ms: number, onOver: () => void) => overs.push(onOver) > 0,
  })
  const { market, join } = await feedWorld(t)
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest' }
  const browsers = [await join(), await join(), await join(), await join()] as const
  const [first, second, third, fourth] = browsers
  await market.serve(first, wanted, { ...history(100), subscription: { id: 'h' } })
  const late = await market.askedBy(second, { ...wanted, count: 2 })
  pass(HISTORY_MS)
  third.send({ ...wanted, count: 2 })
  for (const [browser, fetch] of [
    [third, await market.next('ticks_history')],
    [second, late],
  ] as const) {
    reply(fetch, history(100))
    t.match(await browser.next(), history(100))
  }
  t.equal(overs.length, 3)
  overs[1]?.()
  t.match(await fourth.ask({ ...wanted, count: 2 }), history(100))
  t.equal(market.asked('ticks_history').length, 3)
})

await test('a history that is ahead of its stream is still kept when the browser leaves for which it was fetched', async (t) => {
  t.intercept(CacheQuota.prototype, 'keep', { value: () => true })
  const { market, join } = await feedWorld(t)
  const [first, second, third] = [await join(), await join(), await join()]
  const request = await market.serve(
    first,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { ...history(100), subscription: { id: 'h' } },
  )
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 }
  await market.serve(second, wanted, history(103))
  t.match(await second.ask({ forget: 'h' }), { forget: 1 })
  t.match(await third.ask(wanted), history(103))
  for (const epoch of [101, 102, 103, 104]) tick(request, epoch, epoch, 'h')
  t.same(quotes(await first.rest()), [101, 102, 103, 104])
  t.same(quotes(await third.rest()), [104])
})

await test('a browser that leaves while its history is on its way is sent nothing', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const [stays, gone] = [await join(), await join()]
  const request = await market.serve(
    stays,
    { ticks_history: 'R_1', subscribe: 1, end: 'latest' },
    { ...history(100), subscription: { id: 'h' } },
  )
  const fetch = await market.askedBy(gone, { ticks_history: 'R_1', subscribe: 1, end: 'latest', count: 2 })
  gone.client.socket.terminate()
  await until(async () => (await metric('bff_feed_subscribers')).get('') === 1, 'it is gone')
  reply(fetch, history(100))
  await market.serve(stays, { time: 1 }, { time: 1 })
  tick(request, 101, 101, 'h')
  t.same(quotes(await stays.rest()), [101])
  const sent = (await metric('bff_relay_messages_total')).get('direction="to_browser"')
  t.equal(sent, stays.client.received.length)
})

await test('a late answer reaches those who wait for it, and whoever asks after ten seconds does not join them', async (t) => {
  const beats = new Beats(t)
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
  const [first, second, third] = [await join(), await join(), await join()]
  const wanted = { active_symbols: 'brief' }
  const late = await market.askedBy(first, { ...wanted, req_id: 1 })
  beats.pass()
  const again = await market.askedBy(second, { ...wanted, req_id: 2 })
  reply(late, { active_symbols: ['late'] })
  t.match(await first.next(), { req_id: 1, active_symbols: ['late'] })
  third.send({ ...wanted, req_id: 3 })
  t.same(await third.rest(), [])
  reply(again, { active_symbols: ['again'] })
  for (const browser of [second, third]) t.match(await browser.next(), { active_symbols: ['again'] })
  t.equal(market.asked('active_symbols').length, 2)
})

await test('an answer that nobody waits for any more is given up', async (t) => {
  const beats = new Beats(t)
  const { market, join, metric } = await feedWorld(t)
  const [stays, gone] = [await join(), await join()]
  const late = await market.askedBy(gone, { time: 1 })
  gone.client.socket.terminate()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 1, 'it is gone')
  beats.pass()
  reply(late, { time: 1 })
  reply(await market.askedBy(stays, { time: 1 }), { time: 2 })
  t.match(await stays.next(), { time: 2 })
  t.equal((await metric('bff_feed_unattributed_messages_total')).get(''), 1)
})

await test('a history that nobody waits for any more is given up while its stream goes on', async (t) => {
  const beats = new Beats(t)
  const { market, join, metric } = await feedWorld(t)
  const [stays, gone] = [await join(), await join()]
  const wanted = { ticks_history: 'R_1', subscribe: 1, end: 'latest' }
  await market.serve(stays, wanted, { ...history(100), subscription: { id: 'h' } })
  const late = await market.askedBy(gone, { ...wanted, count: 2 })
  gone.client.socket.terminate()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 1, 'it is gone')
  beats.pass(HISTORY_MS / 10_000 + 1)
  reply(late, history(100))
  reply(await market.askedBy(stays, { time: 1 }), { time: 2 })
  t.match(await stays.next(), { time: 2 })
  t.equal((await metric('bff_feed_unattributed_messages_total')).get(''), 1)
})
