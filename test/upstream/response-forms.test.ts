import type { Socket } from 'node:net'
import { Registry } from 'prom-client'
import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { discover } from '../../src/oauth/discovery.ts'
import { Provider } from '../../src/oauth/provider.ts'
import { ProviderTraffic } from '../../src/oauth/provider-traffic.ts'
import { checkApi } from '../../src/ops/check-api.ts'
import { checkProvider } from '../../src/ops/check-provider.ts'
import { Identity } from '../../src/sessions/identity.ts'
import { OtpClient } from '../../src/sockets/relay/otp.ts'
import { createIdentityMetrics } from '../../src/telemetry/identity-metrics.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { ALONE } from '../support/server/settings.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { restClient } from '../support/upstream/rest-client.ts'
import type { RawUpstream } from '../support/upstream/raw-upstream.ts'
import { FORMS, REFUSED, sendForm } from '../support/upstream/response-forms.ts'
import { startWorld, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
import { exactly } from '../support/exactly.ts'

/** One body for every endpoint. */
function bodyOf({ url }: RawUpstream): string {
  return JSON.stringify({
    data: { url: `${url.replace('http', 'ws')}/once`, id: 'the-user' },
    access_token: 'the-access-token',
    token_type: 'Bearer',
    expires_in: 3600,
    issuer: url,
    authorization_endpoint: `${url}/oauth2/auth`,
    token_endpoint: `${url}/oauth2/token`,
    keys: [],
  })
}

const textOf = ({ status, text }: { status: number; text: string }): string =>
  status === 200 ? text : `status ${status}`

/** Every kind of request to a peer that speaks HTTP, and what each comes to. */
async function formsWorld(t: Test) {
  const world = await startWorld(t, { ...API, settings: { CALLS_PER_SESSION_MINUTE: '0' } })
  const { call, send: sendCall, upstream } = world
  const body = bodyOf(upstream)
  const settings = {
    ...ALONE,
    AUTH_URL: upstream.url,
    API_URL: upstream.url,
    WS_URL: upstream.url.replace('http', 'ws'),
  }
  const identity = { path: '/me', pointer: '/data/id', maxSessions: Infinity }
  const config = readConfig(settings)
  const { upstream: upstreamConfig, oauth, relay } = config
  const otp = new OtpClient(restClient(t, upstream, 2), relay, upstreamConfig)
  const asks = new Identity(
    restClient(t, upstream, 2),
    { upstream: upstreamConfig, identity },
    createIdentityMetrics(new Registry()),
  )
  const { log } = createLog('silent', { worker: undefined, isShared: false })
  const [provider, traffic] = [new Provider(oauth), new ProviderTraffic(oauth)]
  t.teardown(() => Promise.all([provider.close(), traffic.close()]))
  const proofs = { state: 's', verifier: 'v'.repeat(43), nonce: undefined, startedAt: Date.now() }
  const ahead = timeAhead(t)
  let calls = 0
  const asked: Record<string, () => Promise<unknown>> = {
    'a GET': async () => textOf(await call('GET', ACCOUNTS)),
    'a POST': async () => textOf(await call('POST', ACCOUNTS, { body: '{}' })),
    'a POST with a key, and its repetition': async () => {
      const init = { body: '{}', headers: { 'idempotency-key': `key-${++calls}` } }
      const first = textOf(await call('POST', ACCOUNTS, init))
      const again = textOf(await call('POST', ACCOUNTS, init))
      return first === again ? again : [first, again]
    },
    health: async () => {
      ahead(20_000)
      return textOf(await sendCall('GET', '/api/v1/health', { headers: { 'x-csrf': '1' } }))
    },
    'a one-time URL': async () => {
      const request = {
        id: '1',
        signal: new AbortController().signal,
        subject: '',
        source: () => '',
        conditions: {},
      }
      return (await otp.request('VRTC100', 'token', request)).is
    },
    identity: () => asks.ask('token', { id: '1', log }),
    'a token': async () => (await provider.exchange('code=c&state=s', proofs)).is,
    keys: async () => Object.keys(await traffic.document('keys', `${upstream.url}/keys`, 2000)).includes('keys'),
    discovery: async () => (await discover(oauth, 2000)).is,
    '--check': async () => (await checkApi(config)).map(({ is }) => is).join(),
  }
  const expected = [body, body, body, body, 'url', 'the-user', 'granted', true, 'found', 'ok']
  return {
    ...world,
    body,
    config,
    asked,
    expected: new Map(Object.keys(asked).map((name, index) => [name, expected[index]])),
  }
}

await test('Every valid form of a response is taken, whoever sends it', async (t) => {
  const { upstream, body, asked, expected } = await formsWorld(t)
  for (const [name, form] of Object.entries(FORMS)) {
    for (const inBytes of /100|after a length/.test(name) ? [false, true] : [false]) {
      upstream.answer = (_request, socket) => void sendForm(socket, form(body), inBytes)
      const outcomes = new Map<string, unknown>()
      for (const [what, ask] of Object.entries(asked)) outcomes.set(what, await ask().catch(String))
      t.same(outcomes, expected, `${name}${inBytes ? ', byte by byte' : ''}`)
    }
  }
  const { requests } = upstream
  const isTwice = requests.filter(({ headers }) =>
    headers.some(([key, value]) => key === 'idempotency-key' && value === 'key-1'),
  )
  t.equal(isTwice.length, 1, 'nothing is sent twice')
})

await test('A 100 that comes while a large body is on its way does not end the call', async (t) => {
  const { upstream, call } = await startWorld(t, API)
  const body = 'x'.repeat(500_000)
  upstream.onHead = (_head, socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n')
  for (let times = 0; times < 3; times++) t.match(await call('POST', ACCOUNTS, { body }), { status: 200 })
  t.ok(upstream.requests.every((request) => request.body.length === body.length))
  t.equal(upstream.requests.length, 3)
})

await test('A form that is not taken is the fault of who sends it, and --check tells it from a broken network', async (t) => {
  const { upstream, body, asked, config, call } = await formsWorld(t)
  const how = 'answers, but with nothing that this server can read'
  for (const [name, form] of Object.entries(REFUSED)) {
    upstream.answer = (_request, socket) => void sendForm(socket, form(body))
    t.match((await call('POST', ACCOUNTS, { body: '{}' })).json, { code: 'upstream_lost', outcome: 'unknown' }, name)
    t.equal(await asked['a one-time URL']?.(), 'refused', name)
    t.equal(await asked['identity']?.(), undefined, name)
    t.equal(await asked['a token']?.(), 'unavailable', name)
    t.equal(await asked['discovery']?.(), 'away', name)
    const results = [...(await checkApi(config)), ...(await checkProvider(config.oauth))]
    const failed = results.filter(({ is }) => is === 'failed')
    t.match(failed.map(({ setting }) => setting).slice(0, 2), exactly('API_URL', 'AUTH_URL'), name)
    for (const { message, advice } of failed) {
      t.match(message, how, name)
      t.match(advice, 'docs/upstream.md (Responses)', name)
    }
  }
  for (const broken of [(socket: Socket) => socket.resetAndDestroy(), (socket: Socket) => socket.end()]) {
    upstream.answer = (_request, socket) => void broken(socket)
    for (const { message } of await checkApi(config))
      t.match(message, /cannot be reached \((ECONNRESET|UND_ERR_SOCKET)\)/)
  }
})

await test('Nothing but the heads of responses is changed, whatever a body looks like and when it comes', async (t) => {
  const { upstream, call } = await startWorld(t, API)
  const text = `HTTP/1.1 100 Continue\r\nContent-Length: 7 \r\n\r\nHTTP/1.1 200 OK\r\n`
  const length = `Content-Length: ${text.length} \r\nX-Name: a  b \t\r\n\r\n`
  for (const interim of ['', 'HTTP/1.1 100 Continue\r\n\r\n']) {
    upstream.answer = (_request, socket) => {
      socket.write(`${interim}HTTP/1.1 200 OK\r\nContent-Disposition: inline; filename="a  b" \r\n${length}`)
      setImmediate(() => socket.write(text))
    }
    for (const method of ['GET', 'POST', 'GET']) {
      const answer = await call(method, ACCOUNTS, method === 'POST' ? { body: '{}' } : {})
      t.match(answer, { status: 200, text, headers: { 'content-length': String(text.length) } })
      t.equal(answer.headers['content-disposition'], 'inline; filename="a  b"')
    }
  }
  t.same(
    upstream.requests.map(({ connection }) => connection),
    [1, 2, 1, 1, 2, 1],
    'the connections are used again',
  )
})
