import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { logIn } from '../support/parts.ts'
import { SECRETS, testServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { answerJson, type ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

type Play = (upstream: ScriptedUpstream) => void
const otp =
  (status: number, body: unknown): Play =>
  (upstream) => {
    upstream.onOtp = (_request, response) => answerJson(response, status, body)
  }
const urls = (make: (good: string, host: string) => unknown): Play => {
  return (upstream) => {
    upstream.onOtp = (_request, response) => answerJson(response, 200, make(upstream.otpUrl(), upstream.host))
  }
}
const upgrade =
  (head: string): Play =>
  (upstream) => {
    upstream.onUpgrade = (_request, socket) => socket.end(`HTTP/1.1 ${head}\r\ncontent-length: 0\r\n\r\n`)
  }

const REFUSALS: [why: string, play: Play, code: number, reason: string][] = [
  ['OTP 403', otp(403, {}), 4403, 'upstream_error'],
  ['OTP 404', otp(404, {}), 4404, 'not_found'],
  ['OTP 429', otp(429, {}), 4429, 'rate_limited'],
  ['OTP 500', otp(500, {}), 1013, 'upstream_error'],
  ['OTP 302', otp(302, {}), 1013, 'upstream_error'],
  ['OTP not JSON', otp(200, '<html>'), 1013, 'upstream_error'],
  ['OTP empty', otp(200, ''), 1013, 'upstream_error'],
  ['OTP null', otp(200, 'null'), 1013, 'upstream_error'],
  ['OTP without URL', otp(200, { data: { url: null, id: 'https://a.example' } }), 1013, 'upstream_error'],
  ['OTP too large', otp(200, { data: 'x'.repeat(70_000) }), 1013, 'upstream_error'],
  ['OTP too deep', otp(200, '['.repeat(60_000)), 1013, 'upstream_error'],
  ['two URLs', urls((good) => ({ demo: good, real: `${good}x` })), 1013, 'upstream_error'],
  ['something else at the pointer', urls((good) => ({ data: { url: 'soon' }, other: good })), 1013, 'upstream_error'],
  ['http', urls((good) => ({ data: { url: good.replace('ws:', 'http:') } })), 1013, 'upstream_error'],
  ['a unix socket', urls(() => ({ data: { url: 'ws+unix:/tmp/s:/x' } })), 1013, 'upstream_error'],
  ['a foreign host', urls(() => ({ data: { url: 'ws://evil.example/' } })), 1013, 'upstream_error'],
  ['a foreign port', urls(() => ({ data: { url: 'ws://127.0.0.1:1/' } })), 1013, 'upstream_error'],
  [
    'a host by userinfo',
    urls((_good, host) => ({ data: { url: `ws://${host}@evil.example/` } })),
    1013,
    'upstream_error',
  ],
  ['userinfo', urls((good) => ({ data: { url: good.replace('://', '://a:b@') } })), 1013, 'upstream_error'],
  ['a fragment', urls((good) => ({ data: { url: `${good}#x` } })), 1013, 'upstream_error'],
  ['OTP lost', (upstream) => (upstream.onOtp = (request) => void request.socket.destroy()), 1013, 'upstream_lost'],
  ['OTP too slow', (upstream) => (upstream.onOtp = () => undefined), 1013, 'upstream_timeout'],
  ['socket 401', upgrade('401 Unauthorized'), 1013, 'upstream_error'],
  ['socket 403', upgrade('403 Forbidden'), 4403, 'upstream_error'],
  ['socket 404', upgrade('404 Not Found'), 4404, 'not_found'],
  ['socket 429', upgrade('429 Too Many Requests'), 4429, 'rate_limited'],
  ['socket 503', upgrade('503 Unavailable'), 1013, 'upstream_error'],
  ['socket 302', upgrade('302 Found\r\nlocation: ws://evil.example/'), 1013, 'upstream_error'],
  [
    'a socket of another protocol',
    upgrade('101 OK\r\nupgrade: x\r\nconnection: upgrade'),
    1013,
    'upstream_unreachable',
  ],
  [
    'no HTTP',
    (upstream) => (upstream.onUpgrade = (_request, socket) => socket.end('hm')),
    1013,
    'upstream_unreachable',
  ],
  [
    'a socket that is reset',
    (upstream) => (upstream.onUpgrade = (_request, socket) => void socket.destroy()),
    1013,
    'upstream_unreachable',
  ],
]

await test('GET /ws/trading/:account answers 101 and a close frame for every failure upstream, and releases its permits', async (t) => {
  const { upstream, socket, server, metric, quiet } = await startWorld(t, {
    ...RELAY,
    settings: { MAX_RELAYS: '1', MAX_RELAYS_PER_SESSION: '1', UPSTREAM_HEADERS_SECONDS: '3' },
  })
  const { onOtp } = upstream
  for (const [why, play, code, reason] of REFUSALS) {
    play(upstream)
    const client = await socket(TRADING).opened()
    t.same(await client.closed, { code, reason }, why)
    upstream.onOtp = onOtp
    upstream.onUpgrade = undefined
  }
  t.equal(upstream.open, 0)
  // There is one permit. This relay opens only if every refused handshake has released it.
  const client = await socket(TRADING).opened()
  await upstream.socket()
  client.socket.close(1000)
  t.equal((await client.closed).code, 1000)
  t.notMatch(JSON.stringify(server.log), /secret-otp|evil\.example|a:b@/)
  t.equal((await metric('bff_relay_refusals_total')).get('reason="upstream_timeout"'), 1)
  t.equal(
    (await metric('bff_relay_endings_total')).get('kind="trading",code="1013"'),
    REFUSALS.filter(([, , code]) => code === 1013).length,
  )
  await quiet()
})

await test('an unexpected error closes the socket with 1011, causes no call upstream, and releases the permits', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true, settings: { MAX_RELAYS: '1' } })
  const { browser, server, settings } = world
  // A second instance, whose near cache does not have the session.
  const other = await testServer(t, { ...settings, PUBLIC_URL: server.url })
  const [cookie] = browser.named('__Host-session')
  const id = cookie?.value.split('.')[0] ?? ''
  const key = sessionKey(id)
  const store = await world.storeClient()
  // The record is sealed correctly, but no server would write such a record.
  const envelope = new Envelope(new Changeable([SECRETS]))
  const record = envelope.open(key, id, (await store.get(key)) ?? '') ?? '{}'
  const broken = { ...(JSON.parse(record) as object), tokenExpiresAt: 1, refreshToken: 5 }
  await store.set(key, envelope.seal(key, id, JSON.stringify(broken)), { KEEPTTL: true })
  t.same(await world.socket(TRADING, { at: other }).closed, { code: 1011, reason: 'internal_error' })
  t.equal(world.upstream.otpRequests.length, 0)
  t.ok(other.log.some(({ level, msg }) => level === 50 && msg === 'a relay could not be opened'))

  await logIn(browser, server.url)
  const client = await world.socket(TRADING, { at: other }).opened()
  await world.upstream.socket()
  t.equal(client.socket.readyState, 1, 'the permit was released')
})

await test('a trading socket is closed with provider_unavailable while the provider cannot renew its token', async (t) => {
  const world = await startWorld(t, { ...RELAY, provider: { refreshTokens: true, accessTokenSeconds: 2 } })
  const open = await world.socket(TRADING).opened()
  await world.provider.close()
  const refused = { code: 1013, reason: 'provider_unavailable' }
  await until(async () => {
    const client = world.socket(TRADING)
    await until(() => client.socket.readyState === client.socket.CLOSED || world.upstream.open > 1)
    client.socket.terminate()
    const { code, reason } = await client.closed
    return code === refused.code && reason === refused.reason
  })
  t.equal(open.socket.readyState, 1, 'the open relay goes on')
})
