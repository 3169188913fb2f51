import type { Socket } from 'node:net'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { UpstreamBudget } from '../../src/upstream/budget/upstream-budget.ts'
import { RestClient } from '../../src/upstream/rest-client.ts'
import { ManualBudget } from '../support/manual-budget.ts'
import { rawUpstream } from '../support/raw-upstream.ts'
import { ALONE } from '../support/settings.ts'

await test('a request that waits for a connection is not sent when upstream refuses its class meanwhile', async (t) => {
  const upstream = await rawUpstream(t)
  const { upstream: config } = readConfig({ ...ALONE, API_URL: upstream.url, UPSTREAM_BUDGET: '300/60' })
  const store = new MemoryStore()
  t.teardown(() => store.close())
  if (config.budget === undefined) throw new Error('there is no budget')
  const budget = await UpstreamBudget.open(config.budget, store)
  t.teardown(() => budget.close())
  const rest = new RestClient(config, { connections: 1 }, budget)
  t.teardown(() => rest.close())
  let held: Socket | undefined
  upstream.answer = (_request, socket) => void (held = socket)
  const send = (path: string) => rest.exchange({ method: 'GET', path, headers: [], body: null })
  const arrived = upstream.next()
  const first = send('/first')
  const waiting = send('/waiting')
  await arrived
  held?.write('HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n')
  t.match(await first, { is: 'answered', response: { status: 429 } })
  const refused = await waiting
  t.equal(refused.is, 'overBudget')
  t.ok(refused.is === 'overBudget' && refused.retryAfterMs > 20_000 && refused.retryAfterMs <= 30_000)
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/first'],
  )
})

for (const { retryAfter, ms } of [
  { retryAfter: undefined, ms: 10_000 },
  { retryAfter: 'soon', ms: 10_000 },
  { retryAfter: '-5', ms: 10_000 },
  { retryAfter: '1.5', ms: 10_000 },
  { retryAfter: '7, 7', ms: 10_000 },
  { retryAfter: '7', ms: 7000 },
  { retryAfter: ['7', '9'], ms: 7000 },
  { retryAfter: '0', ms: 1000 },
  { retryAfter: 'Mon, 01 Jan 2001 00:00:00 GMT', ms: 1000 },
  { retryAfter: '99999999999999999999', ms: 3_600_000 },
  { retryAfter: 'Fri, 31 Dec 9999 23:59:59 GMT', ms: 3_600_000 },
]) {
  await test(`a 429 with Retry-After ${JSON.stringify(retryAfter)} holds its class back for ${ms} ms`, async (t) => {
    const world = new ManualBudget({})
    await world.budget.opened()
    const reservation = await world.reserve('reads')
    reservation?.answered(429, retryAfter)
    t.match(await world.budget.admit('reads', 'a'), { is: 'refused', retryAfterMs: ms })
    t.match(await world.budget.admit('orders', 'a'), { is: 'granted' })
    await world.pass(ms - 1)
    t.match(await world.budget.admit('reads', 'a'), { is: 'refused' })
    await world.pass(1)
    t.match(await world.budget.admit('reads', 'a'), { is: 'granted' })
  })
}

await test('an order that is refused when it is about to be written counts as refused', async (t) => {
  const world = new ManualBudget({})
  await world.budget.opened()
  const [first, second] = [await world.reserve('orders'), await world.reserve('orders')]
  first?.start()
  first?.answered(429, '7')
  t.equal(second?.start(), 7000)
  t.equal(world.budget.counts.refused.orders, 1)
})
