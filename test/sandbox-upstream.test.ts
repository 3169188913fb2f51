import { test } from 'tap'
import { startProvider } from '../sandbox/provider.ts'
import { startUpstream } from '../sandbox/upstream.ts'
import { PUBLISHED_LIMITS } from '../sandbox/upstream/limits.ts'
import { BrowserSocket } from './support/browser/browser-socket.ts'
import { CLIENT_ID, REDIRECT_URI } from './support/sandbox/oauth-client.ts'
import { type Json, messageSocket, nobody, providerOf, publicLine, rise, trading } from './support/sandbox/world.ts'
import { exactly } from './support/exactly.ts'

await test('401 from REST endpoints without a valid bearer token or PAT', async (t) => {
  const { upstream, call } = await trading(t)
  const health = await fetch(`${upstream.url}/v1/health`)
  t.equal(await health.text(), 'OK')
  t.match(health.headers.get('content-type'), 'text/plain')

  for (const authorization of ['', 'Bearer wrong', 'Bearer pat_demo_DOT90004580']) {
    const refused = await call('GET', '/trading/v1/options/accounts', undefined, { authorization })
    t.equal(refused.status, 401)
    t.match(refused.body, { errors: [{ status: 401, code: 'Unauthorized' }], meta: { method: 'GET' } })
  }
  const listed = await call('GET', '/trading/v1/options/accounts')
  t.match(listed.body, { data: [{ account_type: 'demo', balance: 10_000 }, { account_type: 'real' }] })
  const credentials = upstream.requests.map((request) => request.credential)
  t.same(credentials, ['none', 'none', 'bearer', 'pat', 'bearer'])
  const owner = { authorization: 'Bearer pat_demo_DOT90004580', 'service-app-id': 'web' }
  t.equal((await call('GET', '/trading/v1/options/accounts', undefined, owner)).status, 200)
})

await test('Each family of REST endpoints has its own envelope', async (t) => {
  const { call } = await trading(t)
  const statusOf = async (method: string, path: string, body?: Json): Promise<number> =>
    (await call(method, path, body)).status
  t.match((await call('GET', '/account/v1/nickname')).body, { data: { nickname: String }, errors: { length: 0 } })
  t.match((await call('GET', '/wallet/v1/wallets')).body, { data: [{ balance: '5000.00' }], links: Object })
  const accounts = '/trading/v1/options/accounts'
  const account = { currency: 'USD', group: 'row' }
  t.match((await call('POST', accounts, { ...account, account_type: 'demo' })).body, { data: { account_type: 'demo' } })
  const created = await call('POST', accounts, { ...account, account_type: 'real', currency: 'EUR' })
  t.equal(created.status, 201)
  t.match(created.body, { data: [{ account_type: 'real', currency: 'EUR' }] })
  t.equal(await statusOf('POST', accounts, { ...account, account_type: 'other' }), 400)
  t.equal(await statusOf('POST', accounts, { account_type: 'demo' }), 400, 'without a currency')
  t.equal(await statusOf('POST', `${accounts}/DOT90004580/reset-demo-balance`), 200)
  t.equal(await statusOf('POST', `${accounts}/ROT90004581/reset-demo-balance`), 400)

  const overview = '/partners/analytics/v1/overview?start_date=2026-01-01&end_date='
  t.match((await call('GET', `${overview}2026-01-31`)).body, { signup_summary: { total: 93 } })
  t.equal(await statusOf('GET', `${overview}2028-01-01`), 200, '730 days later')
  for (const wrong of ['2028-01-02', '2025-12-31', '2026-02-30', ''])
    t.equal(await statusOf('GET', overview + wrong), 400)

  const transfer = { to_nickname: 'somebody', amount: '10.00', currency: 'USD', request_id: 'once' }
  t.equal(await statusOf('POST', '/payment-agents/v1/transfer', transfer), 400, 'without an envelope')
  const wrong = { data: { ...transfer, amount: 10 } }
  t.equal(await statusOf('POST', '/payment-agents/v1/transfer', wrong), 400, 'an amount is a text')
  t.equal(await statusOf('POST', '/payment-agents/v1/transfer', { data: transfer }), 201)
  const again = await call('POST', '/payment-agents/v1/transfer', { data: transfer })
  t.match(again, { status: 400, body: { errors: [{ code: 'RequestIDUsed' }] } })
  t.match((await call('GET', '/wallet/v1/wallets')).body, { data: [{ balance: '4990.00' }] })
  t.equal(await statusOf('GET', '/payment-agents/v1/transfer/once'), 200)
  t.equal(await statusOf('GET', '/payment-agents/v1/withdraw/once'), 404)
})

await test('A bulk purchase takes PATs in its body and refuses a bearer token with 400', async (t) => {
  const { upstream, call, token } = await trading(t)
  await call('GET', '/trading/v1/options/accounts')
  const path = '/trading/v1/options/contracts/bulk-purchase/demo'
  const pats = ['pat_demo_DOT90004580', 'pat_real_ROT90004581', 'pat_demo_DOT1']
  const accounts = pats.map((token) => ({ token, account_id: token.slice('pat_demo_'.length) }))
  const body = { contract_parameters: rise(1), accounts: [...accounts, { token: pats[0], account_id: 'DOT1' }] }
  const appId = { 'service-app-id': 'web' }
  t.equal((await call('POST', path, body, { ...appId, authorization: `Bearer ${token}` })).status, 400)
  t.equal(upstream.requests.at(-1)?.credential, 'bearer+pat')
  t.equal((await call('POST', path, body, { authorization: '' })).status, 400, 'without the app id')
  const bought = await call('POST', path, body, { ...appId, authorization: '' })
  const { transactions } = bought.body['data'] as Json
  const refused = { account_id: String, error: { code: 'InvalidToken' } }
  t.match(transactions, exactly({ account_id: 'DOT90004580', balance_after: 9990 }, refused, refused, refused))
})

/** The HTTP status that a handshake is refused with. */
const refusal = (url: string): Promise<number> => new BrowserSocket(url, {}).refusedWith()

await test('A one-time password opens a single socket of its own kind', async (t) => {
  const { upstream, otpUrl, call } = await trading(t)
  const url = await otpUrl('demo')
  t.ok(upstream.issued.has(url))
  const line = await messageSocket(t, url)
  t.equal(await refusal(url), 401, 'a used password')
  t.equal(await refusal((await otpUrl('demo')).replace('/ws/demo', '/ws/real')), 401, 'a password for another kind')
  t.equal(await refusal(`${upstream.wsUrl}/trading/v1/options/ws/demo`), 401, 'no password')
  t.equal(await refusal(`${upstream.wsUrl}/trading/v1/options/ws/other`), 404)
  t.equal((await call('POST', '/trading/v1/options/accounts/DOT1/otp')).status, 404)
  await line.ask({ ping: 1 })
  t.same(upstream.sockets(), { public: 0, demo: 1, real: 0 })
})

await test('A public socket streams market data', async (t) => {
  const { upstream } = await trading(t)
  const line = await messageSocket(t, `${upstream.wsUrl}/trading/v1/options/ws/public`)
  const request = { ticks: 'R_50', subscribe: 1, passthrough: { mine: true } }
  const first = await line.ask(request)
  t.match(first, { msg_type: 'tick', tick: { symbol: 'R_50', pip_size: 4 }, echo_req: request })
  t.same(first['passthrough'], { mine: true })
  const id = (first['subscription'] as { id: string }).id
  t.match(await line.next('tick'), { subscription: { id }, tick: { id } })
  t.match(await line.ask({ ticks: 'R_50', subscribe: 1 }), {
    msg_type: 'tick',
    error: { code: 'AlreadySubscribed', message: 'You are already subscribed to R_50' },
  })
  t.match(await line.ask({ forget: id }), { forget: 1 })
  t.match(await line.ask({ forget: id }), { forget: 0 })
  const candles = { ticks_history: 'R_100', style: 'candles', count: 3, end: 'latest', subscribe: 1 }
  t.match(await line.ask(candles), { msg_type: 'candles', candles: { length: 3 }, pip_size: 2 })
  t.match(await line.next('ohlc'), { ohlc: { granularity: 60, symbol: 'R_100' } })
  t.match(await line.ask({ forget_all: ['ticks', 'candles'] }), { forget_all: [String] })
  t.match(await line.ask({ ticks_history: 'R_10', end: 'latest' }), { history: { prices: { length: 5000 } } })
  t.match(await line.ask({ proposal: 1, ...rise(5) }), { proposal: { ask_price: 10, payout: 18.18 } })
})

await test('A socket replies with an error code to requests that it cannot fulfil', async (t) => {
  const { upstream, otpUrl } = await trading(t)
  const publicLine = await messageSocket(t, `${upstream.wsUrl}/trading/v1/options/ws/public`)
  t.equal(await publicLine.refusal({ buy: 'some', price: 1 }), 'AuthorizationRequired')
  t.equal(await publicLine.refusal({ dance: 1 }), 'UnrecognisedRequest')
  t.equal(await publicLine.refusal({ ticks: 'NONE' }), 'InvalidSymbol')
  t.same((await publicLine.ask({ proposal: 1, symbol: 'R_100' }))['error'], {
    code: 'InputValidationFailed',
    details: {},
    message: 'Input validation failed: Properties not allowed: symbol.',
  })
  publicLine.socket.send('{')
  t.match(await publicLine.next('error'), { error: { code: 'BadRequest' } })
  const line = await messageSocket(t, await otpUrl('real'))
  t.equal(await line.refusal({ auto_list: 1 }), 'NotImplemented')
  t.equal(await line.refusal({ auto_list: 1 }), 'NotImplemented')
})

await test('A socket has 100 subscriptions at most, and an array starts all of its streams or none', async (t) => {
  const { line, url } = await publicLine(t, { limits: { ...PUBLISHED_LIMITS, subscriptions: 3 } })
  t.equal(PUBLISHED_LIMITS.subscriptions, 100)
  const both = { ticks: ['R_10', 'R_25', 'R_10'], subscribe: 1 }
  t.match(await line.ask(both), { tick: { symbol: 'R_10' }, echo_req: both })
  t.match(await line.next('tick'), { tick: { symbol: 'R_25' }, subscription: { id: String } })
  t.equal(await line.refusal({ ticks: ['R_50', 'R_25'], subscribe: 1 }), 'AlreadySubscribed')
  t.equal(await line.refusal({ ticks: ['R_50', 'R_75'], subscribe: 1 }), 'RateLimit', 'a third and a fourth')
  const ticks = { ticks_history: 'R_10', end: 'latest', count: 1, subscribe: 1 }
  t.equal(await line.refusal(ticks), 'AlreadySubscribed', 'the stream of ticks, whatever request has started it')
  t.match(await line.ask({ ticks_history: 'R_10', end: 'latest', count: 1, style: 'candles', subscribe: 1 }), {
    subscription: { id: String },
  })
  t.equal(await line.refusal({ proposal: 1, ...rise(5), subscribe: 1 }), 'RateLimit')
  t.match(await line.ask({ forget_all: ['ticks', 'candles'] }), { forget_all: { length: 3 } })
  t.match(await line.ask({ ticks: 'R_50', subscribe: 1 }), { tick: { symbol: 'R_50' } })
  const other = await messageSocket(t, url)
  t.match(await other.ask(both), { tick: { symbol: 'R_10' } }, 'another socket has its own')
})

await test('A socket counts requests by class of operation, and each socket by itself', async (t) => {
  const requests = { trading: 2, account: 1, reports: 1, ping: 1, other: 3 }
  const { line, url } = await publicLine(t, { limits: { ...PUBLISHED_LIMITS, requests } })
  const proposal = { proposal: 1, ...rise(5) }
  await line.ask(proposal)
  await line.refusal({ proposal: 1 })
  t.match(await line.ask(proposal), {
    msg_type: /^proposal$/,
    error: { code: 'RateLimit', message: 'You have reached the rate limit for proposal.' },
    echo_req: proposal,
  })
  for (const request of [{ time: 1 }, { active_symbols: 'brief' }, { ticks: 'R_50' }])
    t.notOk((await line.ask(request))['error'], 'three of the rest')
  t.equal(await line.refusal({ forget_all: 'ticks' }), 'RateLimit')
  t.match(await line.ask({ ping: 1 }), { ping: 'pong' }, 'pings are counted by themselves')
  const other = await messageSocket(t, url)
  t.match(await other.ask({ time: 1 }), { time: Number })
})

await test('A response echoes req_id and passthrough as they came, and none where there was none', async (t) => {
  const { line } = await publicLine(t)
  const passthrough = '{"__proto__":{"deep":[1,{"req_id":5}]},"a":null}'
  line.socket.send(`{"time":1,"req_id":-7,"passthrough":${passthrough}}`)
  const answer = await line.next('time')
  t.equal(answer['req_id'], -7)
  t.equal(JSON.stringify(answer['passthrough']), passthrough)
  line.socket.send('{"time":1}')
  const bare = await line.next('time')
  t.strictSame([Object.hasOwn(bare, 'req_id'), Object.hasOwn(bare, 'passthrough')], [false, false])
  t.same(bare['echo_req'], { time: 1 })
  const wrong = [
    '"req_id":"1"',
    '"req_id":1.5',
    '"req_id":1e400',
    '"passthrough":[]',
    '"__proto__":1',
    '"subscribe":true',
  ]
  for (const property of wrong) {
    line.socket.send(`{"ticks":"R_50",${property}}`)
    t.match(await line.next('tick'), { error: { code: 'InputValidationFailed' } }, property)
  }
})

await test('A contract on a demo account runs, settles and pays out', async (t) => {
  const { otpUrl } = await trading(t)
  const line = await messageSocket(t, await otpUrl('demo'))
  t.match(await line.ask({ balance: 1, subscribe: 1 }), { balance: { balance: 10_000, currency: 'USD' } })
  await line.ask({ transaction: 1, subscribe: 1 })
  const quoted = await line.ask({ proposal: 1, ...rise(10), subscribe: 1 })
  const { id } = quoted['proposal'] as { id: string }
  t.match(await line.next('proposal'), { proposal: { id } }, 'the quote is streamed')

  const bought = await line.ask({ buy: id, price: 10, subscribe: 1 })
  t.match(bought, { buy: { balance_after: 9990, buy_price: 10, payout: 18.18 } })
  t.match(await line.next('balance'), { balance: { balance: 9990 } })
  t.match(await line.next('transaction'), { transaction: { action: 'buy', amount: -10 } })
  t.match(await line.ask({ portfolio: 1 }), { portfolio: { contracts: { length: 1 } } })

  let contract: Json
  const passed = new Set<unknown>()
  do {
    contract = (await line.next('proposal_open_contract'))['proposal_open_contract'] as Json
    passed.add(contract['tick_passed'])
  } while (contract['status'] === 'open')
  t.same([...passed], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'the ticks are counted from the entry')
  const won = contract['status'] === 'won'
  t.equal(Number(contract['exit_spot']) > Number(contract['entry_spot']), won)
  t.match(await line.next('transaction'), { transaction: { action: 'sell', amount: won ? 18.18 : 0 } })
  t.match(await line.next('balance'), { balance: { balance: won ? 10_008.18 : 9990 } })
  const { contract_id, shortcode } = contract
  const ended = { contract_id, contract_type: 'CALL', underlying_symbol: 'R_100', buy_price: 10, shortcode }
  t.match(await line.ask({ profit_table: 1, description: 1 }), { profit_table: { count: 1, transactions: [ended] } })
  const lines = [
    { action_type: 'sell', contract_id },
    { action_type: 'buy', contract_id, amount: -10, balance_after: 9990, shortcode: undefined },
  ]
  t.match(await line.ask({ statement: 1 }), { statement: { count: 2, transactions: lines } })
  t.match(await line.ask({ statement: 1, action_type: 'buy' }), { statement: { transactions: [lines[1]] } })
})

await test('A contract can be sold before it expires', async (t) => {
  const { otpUrl } = await trading(t)
  const line = await messageSocket(t, await otpUrl('demo'))
  const parameters = { ...rise(1), duration_unit: 'm' }
  const bought = await line.ask({ buy: 1, price: 10, parameters })
  const { contract_id: id } = bought['buy'] as { contract_id: number }
  t.equal(await line.refusal({ sell: id, price: 10_000 }), 'PriceMoved')
  const sold = (await line.ask({ sell: id, price: 0 }))['sell'] as { sold_for: number; balance_after: number }
  t.equal(sold.balance_after, Number((9990 + sold.sold_for).toFixed(2)))
  const shown = await line.ask({ proposal_open_contract: 1, contract_id: id })
  t.match(shown['proposal_open_contract'], { status: 'sold', is_sold: 1 })
})

await test('The same seed gives the same prices', async (t) => {
  const historyOf = async (seed: number): Promise<unknown> => {
    const { line } = await publicLine(t, { seed })
    const { history } = await line.ask({ ticks_history: 'R_75', end: 'latest', count: 1000 })
    return (history as Json)['prices']
  }
  t.same(await historyOf(7), await historyOf(7))
  t.notSame(await historyOf(7), await historyOf(8))
})

await test('Provider and upstream: a start on a port that is taken rejects with EADDRINUSE', async (t) => {
  const { provider } = await providerOf(t)
  const port = Number(new URL(provider.url).port)
  const client = { clientId: CLIENT_ID, redirectUris: [REDIRECT_URI] }
  await t.rejects(startUpstream({ port, provider: nobody }), { code: 'EADDRINUSE' })
  await t.rejects(startProvider({ port, ...client }), { code: 'EADDRINUSE' })
})
