import { test } from 'tap'
import { Collector, type ReceivedSpan } from '../support/telemetry/collector.ts'
import { until } from '../support/time/until.ts'
import { startWorld, RELAY } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
/** In every place where a browser, the provider or upstream can put one. */
const PLANTED = 'PLANTED'

interface CallInit {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The values that attributes may have, by their names. An attribute that is not listed here must not be sent. */
const ALLOWED: Readonly<Record<string, RegExp>> = {
  'http.request.method': /^(GET|HEAD|POST|OPTIONS)$/,
  'http.response.status_code': /^\d{3}$/,
  'http.route': /^(\/[\w.:*-]*)+$/,
  'url.path': /^(\/[\w.:*-]*)+$/,
  'url.full': /^(http|ws):\/\/127\.0\.0\.1:\d+(\/[\w.:-]*)+$/,
  'url.scheme': /^http$/,
  'server.address': /^(localhost|127\.0\.0\.1)$/,
  'server.port': /^\d+$/,
  'error.type': /^([a-z_A-Z]+|\d{3})$/,
  'oauth.request': /^(exchange|refresh|revoke|push)$/,
  'websocket.close_code': /^\d{4}$/,
  'websocket.close_reason': /^[a-z_]+$/,
  'service.name': /^trading-bff$/,
  'service.version': /^[\d.]+$/,
  'service.instance.id': /^[0-9a-f-]{36}$/,
}

await test('No attribute, event or name of any span of a whole journey has a value of a browser, the provider or upstream', async (t) => {
  const collector = await Collector.start(t)
  const world = await startWorld(t, { ...RELAY, settings: { ...collector.settings, TRUST_TRACEPARENT: 'true' } })
  const { browser, upstream, server } = world
  const call = (path: string, init: CallInit = {}): Promise<unknown> =>
    browser
      .fetch(path, {
        ...init,
        headers: { 'x-csrf': '1', 'user-agent': PLANTED, tracestate: `a=b`, baggage: PLANTED, ...init.headers },
      })
      .then((response) => response.text())
      .catch(() => undefined)
  const order = { method: 'POST', body: `{"x":"${PLANTED}"}`, headers: { 'content-type': 'application/json' } }

  await call(`${ACCOUNTS}?name=${PLANTED}`)
  await call(`${ACCOUNTS}/${PLANTED}1/reset-demo-balance`, order)
  await call(`${ACCOUNTS}/${PLANTED}1/reset-demo-balance`, {
    ...order,
    headers: { ...order.headers, 'idempotency-key': `${PLANTED}-key-of-a-call` },
  })
  await fetch(`${server.url}/%zz${PLANTED}?${PLANTED}`)
  // Refused: without a session, a permission, a route, a method.
  await call(`${ACCOUNTS}?x=${PLANTED}`, { headers: { 'x-csrf': '0', origin: `http://${PLANTED}.example` } })
  await fetch(`${server.url}${ACCOUNTS}?x=${PLANTED}`, { headers: { 'x-csrf': '1' } })
  await call(`/${PLANTED}/${PLANTED}?${PLANTED}=${PLANTED}`)
  await call(`/auth/callback?state=${PLANTED}&code=${PLANTED}`)
  await call(`/auth/callback?error=${PLANTED}&error_description=${PLANTED}`)
  await call(`/auth/signup?utm_source=${PLANTED}&sidc=${PLANTED}`)
  // Upstream fails in every way.
  for (const fail of [
    () => (upstream.onRest = (_request, response) => void response.writeHead(500, PLANTED).end(PLANTED)),
    () => (upstream.onRest = (_request, response) => void response.destroy()),
    () => (upstream.onRest = (_request, response) => void response.socket?.end(`${PLANTED} no HTTP`)),
    () => (upstream.onRest = (_request, response) => void response.writeHead(302, { location: `/${PLANTED}` }).end()),
    () =>
      (upstream.onRest = (_request, response) => {
        response.writeHead(200, { 'content-length': '100' }).write(PLANTED)
        setImmediate(() => response.destroy())
      }),
  ]) {
    fail()
    await call(`${ACCOUNTS}?name=${PLANTED}`)
    await call(`${ACCOUNTS}/${PLANTED}1/reset-demo-balance`, order)
  }
  // Sockets: opened, closed by upstream with a text, refused by the OTP endpoint and by upstream.
  const path = `/ws/trading/${PLANTED}1?x=${PLANTED}`
  const client = await world.socket(path).opened()
  ;(await upstream.socket()).close(4000, PLANTED)
  await client.closed
  upstream.onOtp = (_request, response) => void response.end(`{"data":{"url":"ws://${PLANTED}.example/${PLANTED}"}}`)
  await world.socket(path).closed
  upstream.onOtp = (_request, response) =>
    void response.end(`{"data":{"url":"ws://${upstream.host}/${PLANTED}?${PLANTED}"}}`)
  upstream.onUpgrade = (_request, socket) => void socket.end(`HTTP/1.1 403 ${PLANTED}\r\n\r\n`)
  await world.socket(path).closed
  await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })

  const logout = (): boolean => collector.spans.some(({ name }) => name === 'POST /auth/logout')
  await until(logout, 'the last span arrives')
  for (const span of collector.spans) for (const fault of faultsOf(span)) t.fail(fault, { span })
  t.ok(collector.spans.length > 40, `${collector.spans.length} spans`)
  const errors = new Set(collector.spans.map(({ attributes }) => attributes['error.type']))
  for (const error of ['lost', 'cut', 'upstream_error', 'upstream_lost', '500', '403']) t.ok(errors.has(error), error)
  const sent = collector.requests.map(({ body }) => body.toString()).join('\n')
  t.notMatch(sent, new RegExp(PLANTED, 'i'))
})

function faultsOf({ name, attributes, events, resource }: ReceivedSpan): string[] {
  const all = [attributes, resource, ...events.map((event) => event.attributes)].flatMap((each) => Object.entries(each))
  const wrong = all.filter(([key, value]) => ALLOWED[key]?.test(String(value)) !== true)
  const names = [name, ...events.map((event) => event.name)].filter((each) => !/^[\w/:.* …-]+$/.test(each))
  return [...wrong.map(([key, value]) => `${key}: ${String(value)}`), ...names]
}
