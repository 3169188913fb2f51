import { test } from 'tap'
import { answerJson, type ScriptedUpstream } from '../support/scripted-upstream.ts'
import { relayWorld, TRADING } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

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
  [
    'something else at the pointer',
    urls((good) => ({ data: { url: 'soon' }, other: good })),
    1013,
    'upstream_error',
  ],
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
  [
    'OTP lost',
    (upstream) => (upstream.onOtp = (request) => void request.socket.destroy()),
    1013,
    'upstream_lost',
  ],
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

await test('every other refusal is a 101 and a close frame, and leaves nothing behind', async (t) => {
  const world = await relayWorld(t, {
    settings: { MAX_RELAYS: '1', MAX_RELAYS_PER_SESSION: '1', UPSTREAM_HEADERS_SECONDS: '1' },
  })
  const { upstream } = world
  const { onOtp } = upstream
  for (const [why, play, code, reason] of REFUSALS) {
    play(upstream)
    const line = await world.line(TRADING).opened()
    t.same(await line.closed, { code, reason }, why)
    upstream.onOtp = onOtp
    upstream.onUpgrade = undefined
  }
  t.equal(upstream.open, 0)
  // With one place in all, this one is there only if each of them has given it back.
  const line = await world.line(TRADING).opened()
  await upstream.socket()
  line.socket.close(1000)
  t.equal((await line.closed).code, 1000)
  t.notMatch(JSON.stringify(world.server.log), /secret-otp|evil\.example|a:b@/)
  t.equal((await world.metric('bff_relay_refusals_total')).get('reason="upstream_timeout"'), 1)
  t.equal(
    (await world.metric('bff_relay_endings_total')).get('code="1013"'),
    REFUSALS.filter(([, , code]) => code === 1013).length,
  )
  await world.quiet()
})

await test('a bearer that upstream refuses ends the session', async (t) => {
  const plain = await relayWorld(t)
  const other = await plain.line(TRADING).opened()
  otp(401, {})(plain.upstream)
  t.same(await plain.line(TRADING).closed, { code: 4401, reason: 'session_expired' })
  t.same(await other.closed, { code: 4401, reason: 'session_expired' }, 'its other relays end too')
  t.same(await plain.line(TRADING).closed, { code: 4401, reason: 'login_required' })
})

await test('unless it can be renewed', async (t) => {
  const world = await relayWorld(t, { provider: { refreshTokens: true } })
  const { upstream } = world
  const other = await world.line(TRADING).opened()
  const first = upstream.otpRequests[0]?.headers.authorization
  upstream.onOtp = (request, response) =>
    request.headers.authorization === first
      ? answerJson(response, 401, {})
      : answerJson(response, 200, { data: { url: upstream.otpUrl() } })
  const line = await world.line(TRADING).opened()
  await until(() => upstream.open === 2)
  t.equal(upstream.otpRequests.length, 3, 'asked once more, with the new one')
  t.equal(other.socket.readyState, 1, 'the session goes on')
  otp(401, {})(upstream)
  t.same(await world.line(TRADING).closed, { code: 4401, reason: 'session_expired' }, 'but not for ever')
  for (const each of [line, other]) t.same((await each.closed).code, 4401)
  await world.quiet()
})

const URLS: [why: string, make: (good: string, host: string) => unknown][] = [
  ['at the pointer', (good) => ({ data: { url: good }, other: 'wss://evil.example/' })],
  ['elsewhere', (good) => ({ result: [{ socket: good }] })],
  ['twice the same', (good) => ({ a: good, b: good })],
  ['in a JSON string', (good) => ({ data: JSON.stringify({ url: good }) })],
  ['in a JSON string with an array', (good) => ({ data: ` ${JSON.stringify([good])}` })],
  ['the answer itself', (good) => good],
  ['in another spelling', (good) => ({ data: { url: good.replace('ws:', 'WS:') } })],
]

await test('where a one-time URL may stand', async (t) => {
  const world = await relayWorld(t)
  for (const [why, make] of URLS) {
    world.upstream.onOtp = (_request, response) =>
      answerJson(response, 200, JSON.stringify(make(world.upstream.otpUrl(), world.upstream.host)))
    const line = await world.line(TRADING).opened()
    const peer = await world.upstream.socket()
    peer.send('hello')
    t.same((await line.count(1)).length, 1, why)
    line.socket.close()
    await line.closed
  }
  const spent = world.upstream.upgrades.map(({ url }) => url)
  t.equal(new Set(spent).size, URLS.length, 'each was used once')
})
