import { test } from 'tap'
import { ApiError } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure, pageClient } from '../support/client/page-client.ts'
import { scriptedClient } from '../support/client/scripted-client.ts'
import { until } from '../support/time/until.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { startWorld, API } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const ACCOUNTS = '/trading/v1/options/accounts'

await test('a call carries X-CSRF and the session cookie, and returns the response', async (t) => {
  const { upstream, browser, server } = await startWorld(t, API)
  upstream.answer = (_request, socket) => void socket.write(ok('{"data":[1]}'))
  const { api } = pageClient(t, browser, server.url)
  const response = await api(ACCOUNTS)
  t.same(await response.json<{ data: number[] }>(), { data: [1] })
  const json = { data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD' } }
  await api(TRANSFER, { method: 'POST', json })
  t.match(upstream.requests.at(-1), { method: 'POST', body: JSON.stringify(json) })
  t.equal(upstream.header('content-type'), 'application/json')
})

await test('a POST whose connection is lost is sent once, and its outcome is unknown', async (t) => {
  const { upstream, browser, server } = await startWorld(t, API)
  upstream.answer = (_request, socket) => socket.destroy()
  const { api } = pageClient(t, browser, server.url)
  const error = await failure(api(TRANSFER, { method: 'POST', body: '{}' }))
  t.ok(error instanceof ApiError)
  t.match(error, { status: 502, problem: { code: 'upstream_lost' }, outcome: 'unknown' })
  t.equal(upstream.requests.length, 1)
})

await test('a call that was not executed is repeated once, with the same Idempotency-Key', async (t) => {
  for (const [status, code] of [
    [503, 'credential_renewed'],
    [502, 'upstream_unreachable'],
  ] as const) {
    const { client, calls } = await scriptedClient(t, [status, code])
    t.equal((await client.api(TRANSFER, { method: 'POST', idempotencyKey: true })).status, 200)
    t.equal(calls.length, 2)
    t.match(calls, exactly({ key: /^[\w-]{20,60}$/, csrf: '1' }, { key: calls[0]?.key }))
    const twice = await scriptedClient(t, [status, code], [status, code])
    const call = twice.client.api(TRANSFER, { method: 'POST', idempotencyKey: 'mine' })
    t.match(await failure(call), { problem: { code } })
    t.match(twice.calls, exactly({ key: 'mine' }, { key: 'mine' }))
  }
})

await test('no other call is repeated', async (t) => {
  for (const [status, code] of [
    [502, 'upstream_lost'],
    [504, 'upstream_timeout'],
    [500, 'upstream_error'],
    [503, 'session_store_unavailable'],
    [503, 'shutting_down'],
    [429, 'rate_limited'],
  ] as const) {
    const { client, calls } = await scriptedClient(t, [status, code, '1'])
    t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { status, problem: { code }, retryAfter: 1 })
    t.equal(calls.length, 1, code)
  }
})

await test('a GET is repeated after a restart of the server', async (t) => {
  const { client, calls } = await scriptedClient(t, [503, 'shutting_down', '1'])
  const started = Date.now()
  t.equal((await client.api(ACCOUNTS)).status, 200)
  t.equal(calls.length, 2)
  t.ok(Date.now() - started >= 1000)
})

await test('an abort rejects with its reason, even during the pause before a repetition', async (t) => {
  const { client, calls } = await scriptedClient(t, [502, 'upstream_unreachable', '4'])
  const abort = new AbortController()
  const call = client.api(ACCOUNTS, { signal: abort.signal })
  await until(() => calls.length === 1)
  setTimeout(() => abort.abort(new Error('left')), 50)
  t.match(await failure(call), { message: 'left' })
  const early = AbortSignal.abort(new Error('before'))
  t.match(await failure(client.api(ACCOUNTS, { signal: early })), { message: 'before' })
  t.equal(calls.length, 1)
})

await test('a call of a server that does not respond times out', async (t) => {
  const client = await clientOf(t, () => undefined)
  const call = client.api(TRANSFER, { method: 'POST', timeoutMs: 50 })
  t.match(await failure(call), { status: 0, outcome: 'unknown' })
})
