import { test, type Test } from 'tap'
import { once, type Client } from '../../client/dist/client.js'
import { createFakeClient, problem, type FakeClient, type FakeOptions } from '../../client/dist/testing.js'
import { run } from '../support/client/packed.ts'
import { failure, reaches } from '../support/client/page-client.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const ACCOUNTS = '/trading/v1/options/accounts'
const TRANSFER = '/payment-agents/v1/transfer'
const USER = { subject: 'user-1', scope: 'read trade' }

/** A fake client that ends with the test. */
function fake(t: Test, options: FakeOptions = { session: USER }): FakeClient {
  const client = createFakeClient(options)
  t.teardown(() => client.close())
  return client
}

await test('a fake client begins with a session or without one, and login() only notes where it would have led', async (t) => {
  const client = fake(t)
  await client.session.check()
  t.match(client.session.get(), { status: 'active', ...USER })
  client.login({ returnTo: '/' })
  client.signup({ returnTo: '/welcome' })
  const { navigations } = client.server
  t.match(navigations, exactly(/\/auth\/login\?return_to=%2F$/, /\/auth\/signup\?return_to=%2Fwelcome$/))
  const visitor = fake(t, { baseUrl: 'https://bff.example.test/' })
  await visitor.session.check()
  t.same(visitor.session.get(), { status: 'anonymous', reason: undefined })
  t.equal(visitor.session.loginUrl('login', { returnTo: '/' }), 'https://bff.example.test/auth/login?return_to=%2F')
})

await test('a fake client does not take another one for a tab of its own, which would hear of the end of its session', async (t) => {
  const clients = [fake(t), fake(t)]
  for (const { session } of clients) session.subscribe(() => undefined)
  await until(() => clients.every(({ session }) => session.get().status === 'active'))
  for (const { server, session } of clients) {
    await server.endSession('revoked')
    t.same(session.get(), { status: 'anonymous', reason: 'revoked' })
  }
})

for (const reason of ['expired', 'idle', 'refused', 'revoked', 'logout'] as const) {
  await test(`endSession('${reason}'): the page knows the reason`, async (t) => {
    const client = fake(t)
    client.session.subscribe(() => undefined)
    await until(() => client.session.get().status === 'active')
    await client.server.endSession(reason)
    t.same(client.session.get(), { status: 'anonymous', reason })
  })
}

await test('a session ends by itself after its time, unless it is used', async (t) => {
  const pass = timeAhead(t)
  const client = fake(t, { session: { expiresInMs: 300_000, idleMs: 100_000 } })
  client.session.subscribe(() => undefined)
  await client.session.check()
  pass(50_000)
  await client.session.extend()
  t.match(client.session.get(), { status: 'active', expiring: undefined })
  pass(90_000)
  await client.session.check()
  t.match(client.session.get(), { status: 'active', expiring: 'idle' })
  pass(20_000)
  await client.session.check()
  t.same(client.session.get(), { status: 'anonymous', reason: 'idle' })
})

await test('the server answers with what the test says: a response, a problem, or what a function makes of the call', async (t) => {
  const client = fake(t)
  const { api, server } = client
  server.respond('GET', ACCOUNTS, ({ path }) => ({ data: [{ account_id: path }] }))
  server.respond('GET', `${ACCOUNTS}?page=2`, { data: [] })
  t.same(await (await api(ACCOUNTS)).json(), { data: [{ account_id: ACCOUNTS }] })
  t.same(await (await api(`${ACCOUNTS}?page=2`)).json(), { data: [] })
  const outcome = { outcome: 'unknown' } as const
  server.respond('POST', TRANSFER, problem(504, 'outcome_unknown', { ...outcome, retryAfter: 3 }))
  const lost = api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey: 'a-key' })
  t.match(await failure(lost), { status: 504, problem: { code: 'outcome_unknown' }, ...outcome, retryAfter: 3 })
  t.equal(server.calls.at(-1)?.headers.get('idempotency-key'), 'a-key')
  server.respond('POST', '/auth/logout', problem(503, 'session_store_unavailable'))
  t.match(await failure(client.logout()), { status: 503 })
  t.match(await failure(api('/wallet/v1/wallets')), {
    problem: { code: 'not_found', detail: `the test has not called server.respond('GET', '/wallet/v1/wallets', …)` },
  })
})

await test('nothing is pushed to a stream that was refused', async (t) => {
  const client = fake(t)
  client.server.reply('ticks', { error: { code: 'InvalidSymbol', message: 'unknown' } })
  const errors: string[] = []
  const seen = (): unknown => t.fail('it was refused')
  client.publicSocket().subscribe({ ticks: 'R_100' }, seen, ({ code }) => errors.push(code))
  await until(() => errors.length === 1)
  t.equal(client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 1 } }), 0)
  t.same(errors, ['InvalidSymbol'])
})

await test('a message without an answer is refused with a hint, and a stream without one is silent until a push', async (t) => {
  const client = fake(t, {})
  const socket = client.publicSocket()
  const message = `the test has not called server.reply('time', …)`
  t.match(await failure(socket.request({ time: 1 })), { code: 'NoReply', message })
  const quotes: number[] = []
  const stop = socket.subscribe({ ticks: 'R_100' }, ({ tick }) => quotes.push(tick.quote))
  await until(() => client.server.messages.length === 2)
  t.equal(client.server.push({ ticks: 'R_50' }, { tick: { epoch: 1, quote: 1 } }), 0)
  t.equal(client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 2 } }), 1)
  t.same(quotes, [2], 'a push arrives before it returns')
  client.server.disconnect()
  t.equal(client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 3 } }), 0)
  await until(() => client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 4 } }) === 1)
  stop()
  await until(() => client.server.messages.some((each) => 'forget' in each.message))
  t.equal(client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 5 } }), 0)
  t.same(quotes, [2, 4])
})

await test('disconnect() of an account: its socket reconnects at once, the others stay, and a final code ends it', async (t) => {
  const client = fake(t)
  const [first, second] = ['VRTC1', 'VRTC2'].map((account) => client.tradingSocket(account)) as [
    ReturnType<Client['tradingSocket']>,
    ReturnType<Client['tradingSocket']>,
  ]
  await until(() => [first, second].every((socket) => socket.status().state === 'open'))
  const waits = reaches(first, 'waiting')
  client.server.disconnect({ code: 1013, reason: 'upstream_lost', account: 'VRTC1' })
  await waits
  t.match(first.status(), { code: 1013, reason: 'upstream_lost' })
  t.ok(Number(first.status().retryAt) <= Date.now(), 'without a delay')
  t.equal(second.status().state, 'open')
  await until(() => first.status().state === 'open')
  client.server.disconnect({ code: 4404, reason: 'not_found', account: 'VRTC1' })
  t.match(first.status(), { state: 'ended', code: 4404 })
  client.server.reply('balance', (_message, account) => ({
    balance: { balance: 1, currency: 'USD', loginid: account ?? '' },
  }))
  t.match(await second.request({ balance: 1 }), { balance: { loginid: 'VRTC2' } })
  t.equal(client.server.messages.at(-1)?.account, 'VRTC2')
})

await test('a silent network: a page stays unknown, and everything arrives once the network is up', async (t) => {
  const client = fake(t)
  client.server.setNetwork('silent')
  client.session.subscribe(() => undefined)
  client.server.respond('GET', ACCOUNTS, { data: [] })
  client.server.reply('time', { time: 1 })
  const answers = [client.api(ACCOUNTS), client.publicSocket().request({ time: 1 })]
  await new Promise((resolve) => void setImmediate(resolve))
  t.equal(client.session.get().status, 'unknown')
  t.equal(client.server.calls.length, 0)
  client.server.setNetwork('up')
  await Promise.all(answers)
  t.equal(client.session.get().status, 'active')
})

await test('a command on a network that goes silent, and then down, has an unknown outcome', async (t) => {
  const client = fake(t)
  client.server.reply('buy', { buy: {} as never })
  const socket = client.tradingSocket('VRTC100')
  await until(() => socket.status().state === 'open')
  client.server.setNetwork('silent')
  const lost = failure(socket.command({ buy: 'a-proposal', price: 1 }))
  await new Promise((resolve) => void setImmediate(resolve))
  client.server.setNetwork('down')
  t.match(await lost, { code: 'connection_lost', outcome: 'unknown' })
  t.equal(client.server.messages.length, 0)
})

await test('a command that is under way when the connection is lost does not arrive, and its outcome is unknown', async (t) => {
  const client = fake(t)
  const socket = client.tradingSocket('VRTC100')
  await until(() => socket.status().state === 'open')
  const lost = failure(socket.command({ buy: 'a-proposal', price: 1 }))
  client.server.disconnect()
  t.match(await lost, { code: 'connection_lost', outcome: 'unknown' })
  await until(() => socket.status().state === 'open')
  t.equal(client.server.messages.length, 0)
})

for (const [what, use] of Object.entries({
  call: `client.server.respond('GET', '${ACCOUNTS}', wrong); client.api('${ACCOUNTS}').catch(() => undefined)`,
  message: `client.server.reply('time', wrong); client.publicSocket().request({ time: 1 }).catch(() => undefined)`,
})) {
  await test(`a mistake in what a test makes of a ${what} fails the test, whatever the page does with it`, async (t) => {
    const script = `import { createFakeClient } from '${new URL('../../client/dist/testing.js', import.meta.url).href}'
      const client = createFakeClient({ session: {} })
      const wrong = () => { throw new Error('a mistake in the test') }
      ${use}`
    const error = await failure(run(t.testdir(), 'node', '--input-type=module', '-e', script))
    t.match(error, { code: 1, stderr: /a mistake in the test/ })
  })
}

await test('once() tells the refusal of the trading service from a lost response, and from a redirect', async (t) => {
  const client = fake(t)
  await client.server.logIn()
  client.server.respond('POST', TRANSFER, Response.error())
  const order = once((idempotencyKey) => client.api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey }), {
    isMade() {
      client.server.respond('POST', TRANSFER, Response.json({ errors: ['too much'] }, { status: 400 }))
      return false
    },
  })
  t.match(await failure(order), { status: 400, outcome: undefined })
  t.equal(client.server.calls.length, 2)
  client.server.respond('POST', TRANSFER, Response.redirect('https://example.com/'))
  t.match(await failure(client.api(TRANSFER, { method: 'POST', body: '{}' })), {
    problem: undefined,
    outcome: 'unknown',
  })
})

await test('close() ends a fake client, and the browser is online again', (t) => {
  const client = fake(t)
  const page = navigator as { onLine?: boolean }
  client.server.setNetwork('offline')
  t.equal(page.onLine, false)
  client.close()
  t.equal(page.onLine, undefined)
  t.end()
})
