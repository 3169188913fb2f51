import { test } from 'tap'
import { feedWorld, price, refusal, reply, served } from '../support/feed/world.ts'

const OF_THIS_SERVER = 'You have reached the rate limit for ticks.'

await test('subscriptions count in the share of an address as reads do, refused ones too', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '4', TRUST_PROXY: '1' })
  let isLimited = false
  market.auto = (message) => {
    if (isLimited) return refusal('RateLimit')
    return String(message['ticks']).startsWith('X') ? refusal('InvalidSymbol') : served(message)
  }
  const greedy = await Promise.all(Array.from({ length: 3 }, () => join('192.0.2.1')))
  for (const [index, browser] of greedy.entries()) {
    for (const symbol of [`X${index}1`, `X${index}2`, `X${index}3`]) {
      t.match(await browser.ask({ ticks: symbol, subscribe: 1 }), { error: { message: 'of upstream' } })
    }
  }
  isLimited = true
  t.match(await (await join('192.0.2.2')).ask({ ticks: 'A', subscribe: 1 }), {
    error: { message: 'of upstream' },
  })
  isLimited = false
  for (const [index, browser] of greedy.entries()) {
    t.match(await browser.ask({ ticks: `B${index}`, subscribe: 1 }), { error: { message: OF_THIS_SERVER } })
  }
  const honest = await join('192.0.2.3')
  for (const symbol of ['C', 'D']) t.match(await honest.ask({ ticks: symbol, subscribe: 1 }), { tick: { symbol } })
  const late = await join('192.0.2.1')
  t.match(await late.ask({ ticks: 'C', subscribe: 1 }), { tick: { symbol: 'C' } }, 'a stream that exists costs nothing')
  t.equal(market.asked('ticks').length, 12)
})

await test('each symbol of a list counts in the share of its address', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_REQUESTS_PER_MINUTE: '4', TRUST_PROXY: '1' })
  market.auto = ({ ticks }) => refusal(ticks === 'LIMITED' ? 'RateLimit' : 'InvalidSymbol')
  const greedy = await join('192.0.2.1')
  t.match(await greedy.ask({ ticks: ['X1', 'X2', 'X3', 'X4'], subscribe: 1 }), { error: { code: 'InvalidSymbol' } })
  const other = await join('192.0.2.2')
  t.match(await other.ask({ ticks: 'LIMITED', subscribe: 1 }), { error: { message: 'of upstream' } })
  t.match(await greedy.ask({ ticks: 'X5', subscribe: 1 }), { error: { message: OF_THIS_SERVER } })
  t.match(await other.ask({ ticks: 'X5', subscribe: 1 }), { error: { code: 'InvalidSymbol' } })
})

/** Ten symbols that nobody has asked for. */
const list = (round: number): string[] => Array.from({ length: 10 }, (_, index) => `X${round}-${index}`)

await test('lists of unknown symbols start as many subscriptions in a minute as five browsers of the address may have', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_SUBSCRIPTIONS: '10', TRUST_PROXY: '1' })
  market.auto = () => refusal('InvalidSymbol')
  const greedy = [await join('192.0.2.1'), await join('192.0.2.1')]
  const codes: unknown[] = []
  for (let round = 0; round < 10; round++) {
    const { error } = (await greedy[round % 2]?.ask({ ticks: list(round), subscribe: 1 })) ?? {}
    codes.push((error as { code?: unknown } | undefined)?.code)
  }
  const refused = codes.indexOf('RateLimit')
  t.equal(refused, 5, 'nine subscriptions of each list count, besides its request')
  t.same(new Set(codes.slice(refused)), new Set(['RateLimit']))
  t.ok(market.asked('ticks').length <= 50)
  const honest = await join('192.0.2.2')
  t.match(await honest.ask({ ticks: list(10), subscribe: 1 }), { error: { code: 'InvalidSymbol' } })
  t.match(
    await greedy[0]?.ask({ ticks: 'X', subscribe: 1 }),
    { error: { code: 'InvalidSymbol' } },
    'one symbol is no list',
  )
})

await test('a shared operation with a member that it is not known to have goes through an own socket', async (t) => {
  const foreign = [
    { active_symbols: 'brief', authorize: 'token' },
    { contracts_for: 'R_10', logout: 1 },
    { contracts_list: 1, subscribe: 1 },
    { trading_times: 'today', authorize: 'token' },
    { time: 1, logout: 1 },
    { ping: 1, logout: 1 },
    { forget: 'x', authorize: 'token' },
    { forget_all: 'ticks', logout: 1 },
    { ticks: 'R_10', authorize: 'token' },
    { ticks: 'R_10', subscribe: 1, authorize: 'token' },
    { ticks_history: 'R_10', end: 'latest', logout: 1 },
    { ticks_history: 'R_10', end: 'latest', subscribe: 1, logout: 1 },
  ]
  const { market, join } = await feedWorld(t)
  const browser = await join()
  const stream = await market.serve(browser, { ticks: 'R_1', subscribe: 1 }, price(1))
  const single = await market.serve(browser, { time: 1 }, { time: 1 })
  for (const [index, message] of foreign.entries()) {
    const text = JSON.stringify({ ...message, req_id: index })
    const own = await join()
    own.send(text)
    const request = await market.next(Object.keys(message)[0] ?? '', Object.values(message)[0])
    t.equal(request.text, text, 'byte for byte')
    t.notOk([stream.socket, single.socket].includes(request.socket), text)
    reply(request, { error: { code: 'InputValidationFailed', message: 'of upstream' } })
    t.match(await own.next(), { req_id: index, error: { message: 'of upstream' } })
  }
})
