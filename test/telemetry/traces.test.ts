import { test, type Test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import { Collector, type ReceivedSpan } from '../support/telemetry/collector.ts'
import type { SeenRequest } from '../support/upstream/scripted-upstream.ts'
import { until } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

const ACCOUNTS = '/trading/v1/options/accounts'
const RESET = `${ACCOUNTS}/:account_id/reset-demo-balance`
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
/** A span begins at a whole millisecond. */
const CLOCK_MS = 2
const SCRIPT = { 'x-csrf': '1' }

/** A server with traces and a browser that is logged in to it, and the requests that upstream has got. */
async function tracedWorld(
  t: Test,
  settings: Record<string, string> = {},
  store?: Store,
): Promise<World<'scripted'> & { readonly collector: Collector; readonly seen: SeenRequest[] }> {
  const collector = await Collector.start(t)
  const all = { ...collector.settings, ...settings }
  const world = await startWorld(t, { ...RELAY, settings: all, ...(store && { store }) })
  const seen: SeenRequest[] = []
  const respond = world.upstream.onRest
  world.upstream.onRest = (request, response) => {
    seen.push({ url: request.url ?? '', headers: request.headers })
    respond(request, response)
  }
  return { ...world, collector, seen }
}

const childOf = (parent: ReceivedSpan, name: string, spans: readonly ReceivedSpan[]): ReceivedSpan | undefined =>
  spans.find((span) => span.name === name && span.parent === parent.spanId)

await test('GET /api/…: a SERVER span with a CLIENT span below it, whose id upstream gets; the log line has both ids', async (t) => {
  const { collector, browser, server, seen, upstream } = await tracedWorld(t)
  await browser.fetch(`/api${ACCOUNTS}?status=open`, { headers: SCRIPT })
  const served = await collector.span(`GET /api${ACCOUNTS}`)
  t.match(served, { kind: 'server', parent: undefined, hasFailed: false, links: { length: 0 } })
  const reqId = server.log.find(({ route }) => route === `/api${ACCOUNTS}`)?.['reqId']
  t.equal(served.traceId, String(reqId).replaceAll('-', ''), 'the request id without its hyphens')
  t.same(served.attributes, {
    'http.request.method': 'GET',
    'http.route': `/api${ACCOUNTS}`,
    'http.response.status_code': 200,
    'url.path': `/api${ACCOUNTS}`,
    'url.scheme': 'http',
  })
  const called = childOf(served, `GET ${ACCOUNTS}`, collector.trace(served))
  t.match(called, { kind: 'client', hasFailed: false })
  t.same(called?.attributes, {
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'url.full': `http://${upstream.host}${ACCOUNTS}`,
    'server.address': '127.0.0.1',
    'server.port': Number(upstream.host.split(':')[1]),
  })
  t.equal(seen[0]?.headers['traceparent'], `00-${served.traceId}-${called?.spanId}-01`)
  t.match(served.resource, { 'service.name': 'trading-bff', 'service.version': /^\d/ })
  const line = server.log.find(({ msg, route }) => msg === 'request' && route === `/api${ACCOUNTS}`)
  t.match(line, { trace_id: served.traceId, span_id: served.spanId })
})

await test('A traceparent that is not trusted becomes a link, and neither it nor tracestate and baggage go upstream', async (t) => {
  const { collector, browser, seen } = await tracedWorld(t)
  const foreign = { traceparent: `00-${TRACE}-${SPAN}-00`, tracestate: 'a=b', baggage: 'c=d' }
  await browser.fetch(`/api${ACCOUNTS}`, { headers: { ...SCRIPT, ...foreign } })
  const served = await collector.span(`GET /api${ACCOUNTS}`)
  t.not(served.traceId, TRACE)
  t.match(served, { parent: undefined, links: [{ traceId: TRACE, spanId: SPAN }] })
  t.match(seen[0]?.headers['traceparent'], new RegExp(`^00-${served.traceId}-[0-9a-f]{16}-01$`))
  t.match(seen[0]?.headers, { tracestate: undefined, baggage: undefined })
})

await test('TRUST_TRACEPARENT=true: the caller is the parent, and its decision and tracestate go on', async (t) => {
  const { collector, browser, seen, server } = await tracedWorld(t, { TRUST_TRACEPARENT: 'true' })
  const call = (traceparent: string, tracestate = 'a=b'): Promise<Response> =>
    browser.fetch(`/api${ACCOUNTS}`, { headers: { ...SCRIPT, traceparent, tracestate, baggage: 'c=d' } })
  await call(`00-${TRACE}-${SPAN}-00`)
  t.equal(seen[0]?.headers['traceparent']?.slice(0, 36), `00-${TRACE}-`)
  t.equal(seen[0]?.headers['traceparent']?.slice(-3), '-00')
  const line = server.log.findLast(({ msg }) => msg === 'request')
  t.equal(line?.['trace_id'], TRACE, 'the line of a request that is not recorded')

  await call(`00-${TRACE}-${SPAN}-01`)
  const served = await collector.span(`GET /api${ACCOUNTS}`)
  t.match(served, { traceId: TRACE, parent: SPAN, traceState: 'a=b', links: { length: 0 } })
  t.equal(seen[1]?.headers['tracestate'], 'a=b')
  t.equal(seen[1]?.headers['baggage'], undefined)
  t.equal(collector.trace({ traceId: TRACE }).filter(({ kind }) => kind === 'server').length, 1, 'one of two')

  await call(`00-${TRACE}-${'0'.repeat(16)}-01`)
  await until(() => collector.spans.filter(({ name }) => name === served.name).length === 2)
  t.match(await collector.span(served.name), { parent: undefined, links: { length: 0 } }, 'an invalid one')

  await call(`00-${TRACE}-${SPAN}-01`, 'malformed')
  t.equal(seen[3]?.headers['tracestate'], undefined, 'a malformed state goes no further')
  const states = Array.from({ length: 33 }, (_, index) => `vendor${index}=${index}`)
  await call(`00-${TRACE}-${SPAN}-01`, states.join(','))
  t.equal(seen[4]?.headers['tracestate'], states.slice(0, 32).join(','), 'the newest 32 members, which come first')
  await call(`00-${TRACE}-${SPAN}-01`, states.slice(0, 32).join(' , '))
  t.equal(seen[5]?.headers['tracestate'], states.slice(0, 32).join(','))
})

await test('a ratio sampler records none or all of the requests, and upstream is told', async (t) => {
  for (const [OTEL_TRACES_SAMPLER_ARG, flags] of [
    ['0', '00'],
    ['1', '01'],
  ] as const) {
    const { collector, browser, seen } = await tracedWorld(t, {
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG,
    })
    await browser.fetch(`/api${ACCOUNTS}`, { headers: SCRIPT })
    t.equal(seen[0]?.headers['traceparent']?.slice(-2), flags)
    if (flags === '01') await collector.span(`GET /api${ACCOUNTS}`)
    else t.same(collector.requests, [])
  }
})

/** A store whose ledger replies only when the gate is open. */
class SlowLedgerStore extends MemoryStore {
  gate: Promise<void> = Promise.resolve()

  override async openLedger(...args: Parameters<MemoryStore['openLedger']>): ReturnType<MemoryStore['openLedger']> {
    const ledger = await super.openLedger(...args)
    return { settle: (report) => this.gate.then(() => ledger.settle(report)) }
  }
}

await test('POST /api/…: an order that waited for the budget says so, and is answered', async (t) => {
  const store = new SlowLedgerStore()
  const { collector, browser } = await tracedWorld(t, { UPSTREAM_BUDGET: '600/20' }, store)
  const { promise, resolve } = Promise.withResolvers<void>()
  store.gate = promise
  const order = (): Promise<Response> =>
    browser.fetch(`/api${RESET.replace(':account_id', 'VRTC100')}`, { method: 'POST', headers: SCRIPT })
  // A process keeps four tokens at hand.
  const orders = Promise.all(Array.from({ length: 6 }, order))
  const arrived = (name: string): number => collector.spans.filter((span) => span.name === name).length
  await until(() => arrived(`POST ${RESET}`) === 4)
  resolve()
  t.same([...new Set((await orders).map(({ status }) => status))], [200])
  await until(() => arrived(`POST /api${RESET}`) === 6)
  t.equal(arrived('wait for the budget'), 2)
  const wait = await collector.span('wait for the budget')
  const trace = collector.trace(wait)
  const served = trace.find(({ kind }) => kind === 'server')
  const called = trace.find(({ kind }) => kind === 'client')
  t.match(wait, { kind: 'internal', parent: served?.spanId })
  t.match(called, { name: `POST ${RESET}`, parent: served?.spanId })
  t.match(served?.attributes, { 'http.response.status_code': 200 })
  t.ok(wait.startMs + wait.ms <= (called?.startMs ?? 0) + CLOCK_MS, 'the call begins when the wait is over')
})

await test('POST /api/… with an Idempotency-Key: the claim and the record of the response are parts of the request', async (t) => {
  const { collector, browser } = await tracedWorld(t)
  const headers = { ...SCRIPT, 'content-type': 'application/json', 'idempotency-key': 'key-of-a-test-1' }
  const path = `/api${RESET.replace(':account_id', 'VRTC100')}`
  await browser.fetch(path, { method: 'POST', headers, body: '{"secret":"in-the-body"}' })
  const served = await collector.span(`POST /api${RESET}`)
  t.same(
    collector
      .trace(served)
      .map(({ name }) => name)
      .toSorted(),
    [
      'read the session',
      'receive the body',
      'claim the Idempotency-Key',
      `POST ${RESET}`,
      'record the response',
      served.name,
    ].toSorted(),
  )
})

await test('GET /ws/trading/…: one trace has the handshake, the one-time URL, the socket upstream and the end', async (t) => {
  const world = await tracedWorld(t)
  const { collector, server, upstream } = world
  const client = await world.socket(TRADING).opened()
  const peer = await upstream.socket()
  const opened = await collector.span('GET /ws/trading/:accountId')
  t.match(opened.attributes, { 'http.response.status_code': 101 })
  peer.close(4001, 'secret reason of a peer')
  await client.closed
  const ended = await collector.span('socket demo')
  t.match(ended, { traceId: opened.traceId, parent: opened.spanId })
  t.match(ended.events, exactly({ name: 'socket closed', attributes: { 'websocket.close_code': 4001 } }))
  const trace = collector.trace(opened)
  t.ok(childOf(opened, `POST ${ACCOUNTS}/:account_id/otp`, trace), 'the one-time URL')
  const upgrade = childOf(opened, 'GET /:one_time_url', trace)
  t.match(upgrade?.attributes, { 'url.full': `ws://${upstream.host}/:one_time_url`, 'http.response.status_code': 101 })
  t.equal(upstream.upgrades[0]?.headers['traceparent'], `00-${opened.traceId}-${upgrade?.spanId}-01`)
  const ids = { trace_id: opened.traceId, span_id: opened.spanId }
  for (const audit of ['relay_opened', 'relay_ended'])
    t.match(
      server.log.find((line) => line['audit'] === audit),
      ids,
    )

  upstream.onOtp = (_request, response) => void response.writeHead(403).end()
  await world.socket(TRADING).closed
  const refused = (): ReceivedSpan | undefined =>
    collector.spans.find(({ events }) => events[0]?.name === 'socket refused')
  await until(() => refused() !== undefined)
  t.same(refused()?.events[0]?.attributes, { 'websocket.close_code': 4403, 'websocket.close_reason': 'upstream_error' })
})
