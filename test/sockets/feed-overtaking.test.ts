import { test, type Test } from 'tap'
import { Beats } from '../support/feed/beats.ts'
import { feedWorld, history, reply, tick, type Message } from '../support/feed/world.ts'

const wanted = (count: number, reqId = count): Message => ({
  ticks_history: 'R_1',
  subscribe: 1,
  end: 'latest',
  count,
  req_id: reqId,
})

/** A stream whose first request upstream does not answer, and a second browser that has asked for another history of it. */
async function unanswered(t: Test) {
  const beats = new Beats(t)
  const world = await feedWorld(t)
  const { market, join } = world
  const [first, second] = [await join(), await join()]
  const stuck = await market.askedBy(first, wanted(1))
  second.send(wanted(2))
  t.same(await second.rest(), [])
  return { ...world, beats, first, second, stuck }
}

await test('whoever waits for a stream whose first request upstream does not answer is asked for after ten seconds', async (t) => {
  const { market, beats, first, second, stuck } = await unanswered(t)
  beats.pass(1, 9000)
  t.equal(market.asked('ticks_history').length, 1)
  beats.pass()
  const request = await market.next('ticks_history', 'R_1')
  t.match(request.message, { count: 2, subscribe: 1 })
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await second.next(), { req_id: 2, ...history(100) })
  const fetch = await market.next('ticks_history', 'R_1')
  t.match(fetch.message, { count: 1, subscribe: undefined }, 'the first one gets a history of its own')
  reply(fetch, history(100))
  t.match(await first.next(), { req_id: 1, ...history(100) })
  tick(request, 101, 101, 'h')
  for (const browser of [first, second]) t.match(await browser.next(), { tick: { epoch: 101 } })
  reply(stuck, { ...history(100), subscription: { id: 'late' } })
  t.ok(await market.next('forget', 'late'), 'a late start is forgotten')
})

await test('each history that is waited for has its turn once, and the last one is waited for', async (t) => {
  const { market, join, beats, first, second } = await unanswered(t)
  const third = await join()
  third.send(wanted(2, 3))
  t.same(await third.rest(), [])
  beats.pass()
  const request = await market.next('ticks_history', 'R_1')
  beats.pass(3)
  t.same(await first.rest(), [])
  t.equal(market.asked('ticks_history').length, 2)
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await second.next(), { req_id: 2, ...history(100) })
  t.match(await third.next(), { req_id: 3, ...history(100) })
})

await test('a stream that upstream does not answer is asked for once while all wait for the same, and if it is ticks', async (t) => {
  const beats = new Beats(t)
  const { market, join } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const request = await market.askedBy(first, wanted(1))
  second.send(wanted(1, 2))
  const ticks = await market.askedBy(first, { ticks: 'R_2', subscribe: 1 })
  second.send({ ticks: 'R_2', subscribe: 1 })
  t.same(await second.rest(), [])
  beats.pass(3)
  tick(ticks, 1, 1, 'r')
  for (const browser of [first, second]) t.match(await browser.next(), { tick: { quote: 1 } })
  reply(request, { ...history(100), subscription: { id: 'h' } })
  t.match(await first.next(), { req_id: 1, ...history(100) })
  t.match(await second.next(), { req_id: 2, ...history(100) })
  t.equal(market.asked('ticks_history').length, 1)
})
