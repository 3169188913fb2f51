import type { Socket } from 'node:net'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { UpstreamBudget } from '../../src/upstream/budget/upstream-budget.ts'
import { RestClient } from '../../src/upstream/rest-client.ts'
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
