import { setTimeout as delay } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { Subscriber } from '../../src/sockets/feed/streams/subscription.ts'
import { startMember } from '../support/feed/started-member.ts'
import {
  type FeedWorld,
  type Message,
  feedWorld,
  history,
  price,
  quotes,
  refusal,
  reply,
  tick,
} from '../support/feed/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

/** How long a stream that nobody wants waits for upstream's first message. */
const UNANSWERED_MS = 60_000
/** How long a forget_all waits for the first answers of subscriptions. */
const FORGOTTEN_MS = 5000
/** How long a browser's next requests wait for a forget_all. */
const HOLD_MS = 10_000
const TICKS = { ticks: 'R_1', subscribe: 1 }

const streams = async ({ metric }: FeedWorld): Promise<unknown> => (await metric('bff_feed_streams')).get('')

/** A browser subscribes to R_1, which upstream does not answer, and leaves. */
async function abandoned(world: FeedWorld) {
  const { market, join, metric } = world
  const browser = await join()
  const request = await market.askedBy(browser, TICKS)
  browser.client.socket.close()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 0, 'the browser is gone')
  return request
}

await test('a stream that upstream never starts gives its place back when nobody wants it', async (t) => {
  const world = await feedWorld(t)
  const { market, join, metric } = world
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const request = await abandoned(world)
  t.equal(await streams(world), 1, 'upstream may still answer')
  held.run()
  t.equal(await streams(world), 0)
  t.equal((await metric('bff_feed_taken_places')).get(''), 0)

  const browser = await join()
  tick(await market.askedBy(browser, TICKS), 2, 2, 'new')
  t.match(await browser.next(), { tick: { quote: 2 } }, 'upstream is asked again')
  tick(request, 1, 1, 'late')
  t.ok(await market.next('forget', 'late'), 'a late start is forgotten')
  t.same(await browser.rest(), [])
})

await test('whoever wants a stream that upstream has not started yet waits with it', async (t) => {
  const world = await feedWorld(t)
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const request = await abandoned(world)
  const browser = await world.join()
  browser.send({ ...TICKS, req_id: 2 })
  t.same(await browser.rest(), [])
  t.equal(held.size, 0)
  tick(request, 1)
  t.match(await browser.next(), { req_id: 2, tick: { quote: 1 } })
  t.equal(await streams(world), 1)
})

await test('a stream that upstream does not renew gives its place back when its browsers do not return', async (t) => {
  const world = await feedWorld(t, { FEED_RECONNECT_SPREAD_SECONDS: '0' })
  const { market, join } = world
  const held = new HeldTimers(t, 'setTimeout', UNANSWERED_MS)
  const browser = await join()
  const request = await market.serve(browser, TICKS, price(1))
  request.socket.terminate()
  t.match(await browser.client.closed, { code: 1013 })
  await market.next('ticks')
  t.equal(await streams(world), 1)
  held.run()
  t.equal(await streams(world), 0)
})

await test('forget_all is answered although a symbol is silent, whose subscription ends with its first price', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  await market.serve(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(1, 'id-1'))
  const silent = await market.askedBy(browser, { ticks: 'R_2', subscribe: 1, req_id: 2 })
  const held = new HeldTimers(t, 'setTimeout', FORGOTTEN_MS)
  browser.send({ ticks: 'R_2', subscribe: 1, req_id: 21 })
  browser.send({ forget_all: 'ticks', req_id: 3 })
  browser.send({ ping: 1, req_id: 4 })
  while (held.size === 0) await delay(1)
  held.run()
  t.match(await browser.next(), { req_id: 3, forget_all: ['id-1'] })
  t.match(await browser.next(), { req_id: 4, ping: 'pong' })
  t.match(
    await browser.ask({ forget_all: 'ticks', req_id: 5 }),
    { req_id: 5, forget_all: { length: 0 } },
    'it waits only once',
  )
  tick(silent, 1, 1, 'id-2', 'R_2')
  t.match(await browser.next(), { req_id: 2, tick: { symbol: 'R_2' } })
  t.match(await browser.next(), { req_id: 21, error: { code: 'AlreadySubscribed' } })
  tick(silent, 2, 2, 'id-2', 'R_2')
  t.same(await browser.rest(), [])
  t.match(await browser.ask({ ticks: 'R_2', subscribe: 1, req_id: 6 }), { req_id: 6, tick: { symbol: 'R_2' } })
})

/** A browser whose first request upstream does not answer, so that its `forget_all` waits in vain. */
async function forgottenInVain(t: Test, first: Message, behind: readonly Message[] = []) {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const silent = await market.askedBy(browser, { ...first, req_id: 1 })
  for (const each of behind) browser.send(each)
  const held = new HeldTimers(t, 'setTimeout', FORGOTTEN_MS)
  browser.send({ forget_all: ['ticks', 'candles'], req_id: 2 })
  while (held.size === 0) await delay(1)
  held.run()
  t.match(await browser.next(), { req_id: 2, forget_all: { length: 0 } })
  return { market, browser, silent }
}

await test('a second forget_all also ends what waits for a subscription that the first has waited for in vain', async (t) => {
  const { browser, silent } = await forgottenInVain(t, TICKS)
  browser.send({ ...TICKS, req_id: 3 })
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 4 }))['forget_all'], [], 'it has nothing to wait for')
  browser.send({ ...TICKS, req_id: 5 })
  t.same(await browser.rest(), [])
  tick(silent, 1)
  for (const reqId of [1, 3, 5]) t.match(await browser.next(), { req_id: reqId, tick: { quote: 1 } })
  tick(silent, 2)
  t.match(await browser.rest(), exactly({ req_id: 5, tick: { quote: 2 } }), 'only what was asked for later goes on')
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 6 }))['forget_all'], ['sub-1'])
})

await test('a forget_all of other streams ends nothing that waits for a subscription', async (t) => {
  const { browser, silent } = await forgottenInVain(t, TICKS)
  browser.send({ ...TICKS, req_id: 3 })
  t.same((await browser.ask({ forget_all: ['candles', 'proposal'], req_id: 4 }))['forget_all'], [])
  tick(silent, 1)
  for (const reqId of [1, 3]) t.match(await browser.next(), { req_id: reqId, tick: { quote: 1 } })
  tick(silent, 2)
  t.match(await browser.rest(), exactly({ req_id: 3, tick: { quote: 2 } }))
})

await test('a second forget_all also ends a list that waits', async (t) => {
  const { market, browser, silent } = await forgottenInVain(t, TICKS)
  browser.send({ ticks: ['R_2', 'R_1'], subscribe: 1, req_id: 3 })
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 4 }))['forget_all'], [])
  tick(silent, 1, 1, 'id-1', 'R_1')
  t.match(await browser.next(), { req_id: 1, tick: { symbol: 'R_1' } })
  const other = await market.next('ticks', 'R_2')
  tick(other, 1, 1, 'id-2', 'R_2')
  for (const symbol of ['R_2', 'R_1']) t.match(await browser.next(), { req_id: 3, tick: { symbol } })
  tick(silent, 2, 2, 'id-1', 'R_1')
  tick(other, 2, 2, 'id-2', 'R_2')
  t.same(await browser.rest(), [])
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 5 }))['forget_all'], [])
})

await test('a second forget_all also ends a history that waits', async (t) => {
  const asked = { ticks_history: 'R_1', end: 'latest', subscribe: 1 }
  const { market, browser, silent } = await forgottenInVain(t, asked)
  browser.send({ ...asked, count: 2, req_id: 3 })
  t.same((await browser.ask({ forget_all: 'ticks', req_id: 4 }))['forget_all'], [])
  reply(silent, { ...history(10), subscription: { id: 'h' } })
  t.match(await browser.next(), { req_id: 1, history: {} })
  reply(await market.next('ticks_history'), history(10))
  t.match(await browser.next(), { req_id: 3, history: {} })
  tick(silent, 11, 11, 'h')
  t.same(await browser.rest(), [])
})

await test('a request whose turn comes with a refusal ends too if a forget_all has waited in vain meanwhile', async (t) => {
  const { market, browser, silent } = await forgottenInVain(t, TICKS, [{ ...TICKS, req_id: 3 }])
  browser.send({ ...TICKS, req_id: 4 })
  t.same(await browser.rest(), [])
  reply(silent, refusal('InternalServerError'))
  t.match(await browser.next(), { req_id: 1, error: {} })
  const request = await market.next('ticks')
  t.same(await browser.rest(), [])
  tick(request, 1)
  for (const reqId of [3, 4]) t.match(await browser.next(), { req_id: reqId, tick: { quote: 1 } })
  tick(request, 2)
  t.match(quotes(await browser.rest()), exactly(2), 'only what was asked for later goes on')
})

await test('forget_all ends a list that waits for two requests, of which one is refused', async (t) => {
  for (const hasSilent of [false, true]) {
    const { market, join } = await feedWorld(t)
    const browser = await join()
    if (hasSilent) await market.askedBy(browser, { ticks: 'R_9', subscribe: 1 })
    for (const [index, ticks] of ['R_1', 'R_2', ['R_1', 'R_2']].entries())
      browser.send({ ticks, subscribe: 1, req_id: index + 1 })
    const held = new HeldTimers(t, 'setTimeout', FORGOTTEN_MS)
    browser.send({ forget_all: 'ticks', req_id: 4 })
    while (held.size === 0) await delay(1)
    reply(await market.next('ticks', 'R_1'), refusal('InternalServerError'))
    t.match(await browser.next(), { req_id: 1, error: {} })
    const request = await market.next('ticks', 'R_2')
    tick(request, 1, 1, 'id-2', 'R_2')
    t.match(await browser.next(), { req_id: 2, tick: {} })
    const last = await market.next('ticks', 'R_1')
    held.run()
    t.same((await browser.next())['forget_all'], ['id-2'])
    tick(last, 1, 1, 'id-1', 'R_1')
    for (const symbol of ['R_1', 'R_2']) t.match(await browser.next(), { req_id: 3, tick: { symbol } })
    tick(request, 2, 2, 'id-2', 'R_2')
    t.same(await browser.rest(), [])
  }
})

await test('a stream that is subscribed anew before the own socket has answered a forget_all goes on', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const request = await market.serve(browser, { ticks: 'R_1', subscribe: 1, req_id: 1 }, price(1, 'id-1', 'R_1'))
  browser.send('{"proposal":1}')
  await market.next('proposal')
  const held = new HeldTimers(t, 'setTimeout', HOLD_MS)
  const forget = await market.askedBy(browser, { forget_all: 'ticks', req_id: 2 })
  while (held.size === 0) await delay(1)
  held.run()
  t.match(await browser.ask({ forget: 'id-1', req_id: 3 }), { req_id: 3, forget: 1 })
  t.match(await browser.ask({ ticks: 'R_1', subscribe: 1, req_id: 4 }), { req_id: 4, tick: { quote: 1 } })
  reply(forget, { msg_type: 'forget_all', forget_all: [] })
  t.match(await browser.next(), { req_id: 2, forget_all: { length: 0 } })
  reply(request, price(2, 'id-1', 'R_1'))
  t.match(await browser.next(), { req_id: 4, tick: { quote: 2 } })
})

await test('a forget_all that is answered after a later one takes nothing back', async (t) => {
  const subscriber = new Subscriber((await startMember(t)).member)
  subscriber.forgetUnanswered(['ticks'], 2)
  subscriber.forgetUnanswered(['ticks', 'candles'], 1)
  const spec = { identity: '', symbol: '', startedBy: '' }
  const forgotten = (type: 'ticks' | 'candles'): boolean[] =>
    [1, 2, 3].map((number) => subscriber.hasForgotten({ ...spec, type }, number))
  t.same(forgotten('ticks'), [true, true, false])
  t.same(forgotten('candles'), [true, false, false])
})
