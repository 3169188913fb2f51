import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { NO_SPAN } from '../../src/telemetry/traces/span.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'
import { until } from '../support/time/until.ts'
import { clientOf, HEADERS_MS } from '../support/upstream/client-of.ts'
import { gone, ok } from '../support/upstream/raw-upstream.ts'

const source = () => 'source'

/** A budget that gives this answer, what it is asked, and what becomes of its tokens. */
function budgetOf(answer?: object) {
  const log: unknown[] = []
  const reservation = {
    start: () => void log.push('spent'),
    answered: () => undefined,
    end: () => void log.push('over'),
  }
  const admit = async (...args: unknown[]) => (log.push(args), answer ?? { is: 'granted', reservation })
  return { log, budget: { admit } }
}

await test('a request goes to its path below API_URL, with its method, headers and body', async (t) => {
  const { ask, forward, upstream } = await clientOf(t, { base: '/base' })
  t.match(await ask('/x?y=1', { body: Buffer.from('text') }), { is: 'answered', response: { status: 200 } })
  t.match(upstream.requests, [{ method: 'POST', target: '/base/x?y=1', body: 'text' }])
  t.equal(upstream.header('a'), 'b')
  t.match(await forward('/z'), { is: 'answered', status: 200 })
  t.match(upstream.requests[1], { method: 'GET', target: '/base/z' })
  const atRoot = await clientOf(t)
  await atRoot.ask('/x')
  t.match(atRoot.upstream.requests, [{ target: '/x' }])
})

await test('undici waits a little longer than this server for the headers of what is no GET', async (t) => {
  const { ask, forward, dispatched } = await clientOf(t)
  await ask('/1')
  await ask('/2', { timeoutMs: 400 })
  await forward('/3')
  await forward('/4', new PassThrough(), { timeoutMs: 500 })
  t.same(
    dispatched.map(({ headersTimeout }) => headersTimeout),
    [HEADERS_MS + 2000, 2400, HEADERS_MS, 500],
  )
})

await test('an exchange has the time of its request, or else that of all headers', async (t) => {
  const { ask, hold, held } = await clientOf(t)
  hold()
  const times = new HeldTimers(t, 'setTimeout', HEADERS_MS)
  const first = ask('/1')
  await until(() => held.length === 1)
  t.equal(times.size, 1)
  held[0]?.write(ok())
  await first
  const second = ask('/2', { timeoutMs: 400 })
  t.equal(times.size, 0)
  await until(() => held.length === 2)
  held[1]?.write(ok())
  t.match(await second, { is: 'answered' })
})

await test('the budget is asked for each request, as what and for whom it counts', async (t) => {
  const { log, budget } = budgetOf()
  const { ask, forward } = await clientOf(t, { budget, budgetClass: 'orders' })
  t.match(await ask('/1', { subject: 'user', source }), { is: 'answered' })
  t.match(await forward('/2'), { is: 'answered' })
  t.same(log, [['orders', 'user', source], 'spent', 'over', ['orders', '', undefined], 'spent', 'over'])
  const reads = budgetOf({ is: 'refused', limited: 'user', retryAfterMs: 70 })
  const refused = await clientOf(t, { budget: reads.budget })
  const answer = { is: 'overBudget', limited: 'user', retryAfterMs: 70 }
  t.same(await refused.ask('/1'), answer)
  t.same(await refused.forward('/2'), answer)
  t.same(reads.log[0], ['reads', '', undefined])
  t.same(refused.dispatched, [])
})

await test('a request that nobody waits for any more is not sent, with a budget or without', async (t) => {
  const { log, budget } = budgetOf()
  const left = AbortSignal.abort(new Error('left'))
  for (const options of [{}, { budget }]) {
    const { ask, forward, dispatched } = await clientOf(t, options)
    t.same(await forward('/1', new PassThrough().destroy()), { is: 'browserGone', sent: 'nothing', status: 0 })
    t.match(await ask('/2', {}, left), { is: 'unreachable', cause: left.reason })
    t.same(dispatched, [])
  }
  t.same(
    log.filter((entry) => !Array.isArray(entry)),
    ['over', 'over'],
  )
})

await test('an exchange ends when its signal says so', async (t) => {
  const { ask, hold, held } = await clientOf(t)
  hold()
  const left = new AbortController()
  const outcome = ask('/1', {}, left.signal)
  await until(() => held.length === 1)
  left.abort()
  t.match(await outcome, { is: 'timeout' })
})

for (const [budgetClass, ends] of [
  ['orders', 'ECONNRESET'],
  ['reads', 'in order'],
] as const) {
  await test(`the connection of ${budgetClass} that are given up ends: ${ends}`, async (t) => {
    const { ask, hold, held } = await clientOf(t, { budgetClass })
    hold()
    const over = new AbortController()
    const outcome = ask('/1', {}, over.signal)
    await until(() => held.length === 1)
    const [connection] = held
    let end: unknown = 'in order'
    connection?.on('error', ({ code }: NodeJS.ErrnoException) => (end = code))
    over.abort()
    await outcome
    await gone(connection)
    t.equal(end, ends)
  })
}

await test('headers of a response may have 32 KiB', async (t) => {
  const { ask, upstream } = await clientOf(t)
  upstream.answer = (_, socket) => void socket.write(ok('{}', `X: ${'x'.repeat(30_000)}\r\n`))
  t.match(await ask('/1'), { is: 'answered' })
  upstream.answer = (_, socket) => void socket.write(ok('{}', `X: ${'x'.repeat(33_000)}\r\n`))
  t.match(await ask('/2'), { is: 'lost' })
})

await test('a trace has the template of a request, never its path', async (t) => {
  const calls: unknown[] = []
  replace(t, NO_SPAN, 'call', (of: object) => (calls.push(of), NO_SPAN))
  const { rest } = await clientOf(t)
  await rest.exchange({ method: 'GET', path: '/secret', template: '/:id', headers: [], body: null })
  t.match(calls, [{ method: 'GET', template: '/:id', to: {} }])
})
