import { monitorEventLoopDelay } from 'node:perf_hooks'
import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { TRADING, sendTo, ACCOUNTS } from '../support/user.ts'
import { startWorld, API, RELAY } from '../support/world.ts'
const JSON_TYPE = { 'content-type': 'application/json' }

await test('reads are refused at half of UPSTREAM_BUDGET and orders at the end of it, and nothing is sent then', async (t) => {
  const { upstream, call, server } = await startWorld(t, { ...API, settings: { UPSTREAM_BUDGET: '20/600' } })
  const statuses = async (method: string, count: number): Promise<number[]> => {
    const all: number[] = []
    for (let each = 0; each < count; each++) {
      all.push((await call(method, ACCOUNTS, method === 'GET' ? {} : { body: '{}', headers: JSON_TYPE })).status)
    }
    return all
  }
  t.same(await statuses('GET', 12), [...Array<number>(10).fill(200), 429, 429])
  t.same(await statuses('POST', 12), [...Array<number>(10).fill(200), 429, 429])
  t.equal(upstream.requests.length, 20)
  const refused = await call('GET', ACCOUNTS)
  t.match(refused.json, { code: 'upstream_budget', status: 429, title: /All users together/ })
  t.equal(refused.json['outcome'], undefined, 'nothing is unknown')
  const seconds = Number(refused.headers['retry-after'])
  t.ok(seconds >= 1 && seconds <= 607, `Retry-After is ${seconds}`)
  t.same(
    await samplesOf(server.opsUrl, 'bff_upstream_budget_calls_total'),
    new Map([
      ['class="orders",outcome="granted"', 10],
      ['class="orders",outcome="refused"', 2],
      ['class="otps",outcome="granted"', 0],
      ['class="otps",outcome="refused"', 0],
      ['class="reads",outcome="granted"', 10],
      ['class="reads",outcome="refused"', 3],
    ]),
  )
})

await test('an Idempotency-Key is free again after a refusal, and a replay neither costs a call nor shows limits of upstream', async (t) => {
  const { upstream, call } = await startWorld(t, { ...API, settings: { UPSTREAM_BUDGET: '2/600' } })
  upstream.answer = (_request, socket) => void socket.write(ok('{"done":1}', 'RateLimit-Remaining: 3\r\n'))
  const post = (key: string, body: string) =>
    call('POST', ACCOUNTS, { body, headers: { ...JSON_TYPE, 'idempotency-key': key } })
  for (const key of ['sent', 'sent too']) t.equal((await post(key, '{}')).status, 200)
  for (const body of ['{}', '{"another":1}']) {
    const refused = await post('refused', body)
    t.match(refused.json, { code: 'upstream_budget', status: 429 }, 'any call may have the key')
    t.ok(Number(refused.headers['retry-after']) >= 1)
  }
  const replayed = await post('sent', '{}')
  t.match(replayed, { status: 200, text: '{"done":1}', headers: { 'idempotency-replayed': 'true' } })
  t.notOk('ratelimit-remaining' in replayed.headers)
  t.equal(upstream.requests.length, 2)
})

await test('a trading socket whose one-time URL is over the budget is closed with 4429 upstream_budget', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { UPSTREAM_BUDGET: '3/600' } })
  const { upstream } = world
  let asked = 0
  const { onOtp } = upstream
  upstream.onOtp = (...request) => {
    asked++
    onOtp(...request)
  }
  const sockets = [world.socket(TRADING), world.socket(TRADING)]
  for (const socket of sockets) await socket.opened()
  const { code, reason } = await world.socket(TRADING).closed
  t.equal(code, 4429)
  t.match(reason, /^upstream_budget/)
  t.equal(asked, 2, '80 % of three calls are two')
})

await test('calls whose connection is refused use up nothing of the budget', async (t) => {
  const { upstream, call, server } = await startWorld(t, {
    ...API,
    settings: { UPSTREAM_BUDGET: '4/600', API_URL: 'http://127.0.0.1:9' },
  })
  for (let count = 0; count < 6; count++) t.equal((await call('POST', ACCOUNTS, { body: '{}' })).status, 502)
  t.equal(upstream.requests.length, 0)
  t.equal(
    (await samplesOf(server.opsUrl, 'bff_upstream_budget_calls_total')).get('class="orders",outcome="refused"'),
    0,
  )
})

await test('an order whose body arrives while the server closes is sent within the budget', async (t) => {
  const { call, server } = await startWorld(t, { ...API, settings: { UPSTREAM_BUDGET: '20/600' } })
  const body = new PassThrough()
  body.write('{')
  const began = nextEvent(server.app.server.server, 'request')
  const order = call('POST', ACCOUNTS, { body, headers: { ...JSON_TYPE, 'transfer-encoding': 'chunked' } })
  await began
  const closed = server.close()
  body.end('}')
  t.equal((await order).status, 200)
  await closed
})

await test("upstream's rate limit headers are passed on only without a budget", async (t) => {
  for (const budget of ['', '100/60']) {
    const { upstream, call } = await startWorld(t, { ...API, settings: { UPSTREAM_BUDGET: budget } })
    const limits = 'RateLimit-Remaining: 3\r\nX-RateLimit-Limit: 300\r\nRetry-After: 1\r\n'
    upstream.answer = (_request, socket) => void socket.write(ok('{}', limits))
    const { headers } = await call('GET', ACCOUNTS)
    const expected = budget === '' ? ['3', '300', '1'] : [undefined, undefined, '1']
    t.same([headers['ratelimit-remaining'], headers['x-ratelimit-limit'], headers['retry-after']], expected)
  }
})

await test('two instances keep the budget together, in every window', async (t) => {
  const settings = { UPSTREAM_BUDGET: '30/2,50/5', UPSTREAM_BUDGET_ALONE: '0' }
  const { upstream, call, cookie, instance } = await startWorld(t, { ...API, redis: true, settings })
  const other = await instance()
  const headers = { cookie, 'x-csrf': '1', ...JSON_TYPE }
  const arrivals: number[] = []
  upstream.answer = (_request, socket) => {
    arrivals.push(performance.now())
    socket.write(ok())
  }
  const twenty = async (): Promise<boolean> => {
    const calls = Array.from({ length: 20 }, (_value, at) =>
      at % 2 === 0
        ? call('POST', ACCOUNTS, { body: '{}', headers: JSON_TYPE })
        : sendTo(other.port, 'POST', ACCOUNTS, { headers, body: '{}' }),
    )
    for (const { status } of await Promise.all(calls)) t.ok([200, 429].includes(status))
    return arrivals.length > 55
  }
  const delays = monitorEventLoopDelay()
  delays.enable()
  await until(twenty, 'more calls than one long window has', 20_000)
  // What a busy machine holds up arrives late, and so closer to what follows.
  const heldUpMs = delays.max / 1e6
  for (const [calls, windowMs] of [
    [30, 2000],
    [50, 5000],
  ] as const) {
    const within = arrivals.map(
      (first, at) => arrivals.slice(at).filter((each) => each < first + windowMs - heldUpMs).length,
    )
    t.ok(Math.max(...within) <= calls, `${Math.max(...within)} calls within ${windowMs} ms, held up for ${heldUpMs} ms`)
  }
})
