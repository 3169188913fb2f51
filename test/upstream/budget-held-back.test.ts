import type { Socket } from 'node:net'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { UpstreamBudget } from '../../src/upstream/budget/upstream-budget.ts'
import { ManualBudget } from '../support/budget/manual-budget.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { restClient } from '../support/upstream/rest-client.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

await test('a request that waits for a connection is not sent when upstream refuses its user meanwhile', async (t) => {
  const upstream = await rawUpstream(t)
  const { upstream: config } = readConfig({ ...ALONE, API_URL: upstream.url, UPSTREAM_BUDGET: '300/60' })
  const store = new MemoryStore()
  t.teardown(() => store.close())
  if (config.budget === undefined) throw new Error('there is no budget')
  const budget = await UpstreamBudget.open(config.budget, store, (user) => user)
  t.teardown(() => budget.close())
  const rest = restClient(t, upstream, 1, {}, budget)
  let held: Socket | undefined
  upstream.answer = (_request, socket) => void (held = socket)
  const send = (path: string, subject = 'a') =>
    rest.exchange({ method: 'GET', path, template: path, headers: [], body: null, subject, source: () => subject })
  const arrived = upstream.next()
  const first = send('/first')
  const waiting = send('/waiting')
  const other = send('/other', 'b')
  await arrived
  held?.write('HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n')
  t.match(await first, { is: 'answered', response: { status: 429 } })
  const refused = await waiting
  t.match(refused, { is: 'overBudget', limited: 'user' })
  t.ok(refused.is === 'overBudget' && refused.retryAfterMs > 20_000 && refused.retryAfterMs <= 30_000)
  await until(() => upstream.requests.length === 2, 'the call of another user arrives')
  held?.write(ok())
  t.match(await other, { is: 'answered', response: { status: 200 } })
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/first', '/other'],
  )
})

for (const { retryAfter, ms } of [
  { retryAfter: undefined, ms: 10_000 },
  { retryAfter: '', ms: 10_000 },
  { retryAfter: 'soon', ms: 10_000 },
  { retryAfter: '-5', ms: 10_000 },
  { retryAfter: '1.5', ms: 10_000 },
  { retryAfter: '7, 7', ms: 10_000 },
  { retryAfter: '7', ms: 7000 },
  { retryAfter: ['7', '9'], ms: 7000 },
  { retryAfter: '0', ms: 1000 },
  { retryAfter: 'Mon, 01 Jan 2001 00:00:00 GMT', ms: 1000 },
  { retryAfter: '999999', ms: 60_000 },
  { retryAfter: '99999999999999999999', ms: 60_000 },
  { retryAfter: 'Fri, 31 Dec 9999 23:59:59 GMT', ms: 60_000 },
]) {
  await test(`a 429 with Retry-After ${JSON.stringify(retryAfter)} holds its user back for ${ms} ms, in its class`, async (t) => {
    const world = await ManualBudget.opened()
    const reservation = await world.reserve('reads', 'a')
    reservation?.answered(429, retryAfter)
    t.match(await world.admit('reads', 'a'), { is: 'refused', limited: 'user', retryAfterMs: ms })
    t.match(await world.admit('orders', 'a'), { is: 'granted' })
    t.match(await world.admit('reads', 'b'), { is: 'granted' })
    await world.pass(ms - 1)
    t.match(await world.admit('reads', 'a'), { is: 'refused', limited: 'user', retryAfterMs: 1000 })
    await world.pass(1)
    t.match(await world.admit('reads', 'a'), { is: 'granted' })
  })
}

await test('a shorter hold never shortens a longer one', async (t) => {
  const world = await ManualBudget.opened()
  const [first, second] = [await world.reserve('reads', 'a'), await world.reserve('reads', 'a')]
  first?.answered(429, '30')
  second?.answered(429, '1')
  t.match(await world.admit('reads', 'a'), { is: 'refused', retryAfterMs: 30_000 })
})

await test('a 429 to a call without a session, and an informational response, hold nobody back', async (t) => {
  const world = await ManualBudget.opened()
  const admission = await world.budget.admit('reads', '')
  if (admission.is === 'granted') admission.reservation.answered(429, '30')
  t.match(await world.budget.admit('reads', ''), { is: 'granted' })
  const reservation = await world.reserve('reads', 'a')
  reservation?.answered(103, undefined)
  t.match(await world.admit('reads', 'a'), { is: 'granted' })
})

await test('an order that is refused when it is about to be written counts as one that upstream limits', async (t) => {
  const world = await ManualBudget.opened()
  const [first, second] = [await world.reserve('orders', 'a'), await world.reserve('orders', 'a')]
  first?.start()
  first?.answered(429, '7')
  t.match(second?.start(), { is: 'refused', limited: 'user', retryAfterMs: 7000 })
  t.equal(world.budget.counts.limited.orders, 1)
  t.equal(world.budget.counts.refused.orders, 0)
})

await test('a probe for which the budget has no token lets another call be the probe', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 8, windowMs: 10_000 }] })
  for (const user of ['a', 'b', 'c', 'probe']) {
    const reservation = await world.reserve('orders', user)
    t.equal(reservation?.start(), undefined)
    reservation?.answered(429, '60')
    reservation?.end()
  }
  t.ok(world.budget.isHeldBack('orders'))
  t.same(world.budget.usersHeldBack, { orders: 4, otps: 0, reads: 0 })
  await world.pass(1000)
  world.isAway = true
  await world.pass(6000)
  t.match(await world.admit('orders', 'd'), { is: 'refused', limited: 'all' }, 'no token is left without the ledger')
  world.isAway = false
  // Until the tokens that have lapsed are free again, but for less than the time of a probe whose instance has died.
  await world.pass(13_000)
  const probe = await world.reserve('orders', 'e')
  t.ok(probe)
  t.equal(probe?.start(), undefined)
  t.match(await world.admit('orders', 'f'), { is: 'refused', limited: 'all' }, 'there is one already')
  probe?.answered(200, undefined)
  t.notOk(world.budget.isHeldBack('orders'))
  t.ok(await world.send('orders', 'f'))
})

await test('a probe whose user upstream refuses before it is sent lets another call be the probe', async (t) => {
  const world = await ManualBudget.opened()
  const earlier = await world.reserve('orders', 'e')
  t.equal(earlier?.start(), undefined)
  for (const user of ['a', 'b', 'c', 'probe']) {
    const reservation = await world.reserve('orders', user)
    t.equal(reservation?.start(), undefined)
    reservation?.answered(429, '60')
    reservation?.end()
  }
  await world.pass(1000)
  const probe = world.admit('orders', 'e')
  earlier?.answered(429, '60')
  earlier?.end()
  t.match(await probe, { is: 'refused', limited: 'user' })
  t.match(await world.admit('orders', 'f'), { is: 'granted' }, 'the next user need not wait until it would be over')
})
