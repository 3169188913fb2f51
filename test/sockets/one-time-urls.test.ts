import { test } from 'tap'
import { answerJson, type ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { until } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

const otp =
  (status: number, body: unknown) =>
  (upstream: ScriptedUpstream): void => {
    upstream.onOtp = (_request, response) => answerJson(response, status, body)
  }

await test('a 401 for the one-time URL ends a session without a refresh token, and all its relays', async (t) => {
  const plain = await startWorld(t, RELAY)
  const other = await plain.socket(TRADING).opened()
  otp(401, {})(plain.upstream)
  t.same(await plain.socket(TRADING).closed, { code: 4401, reason: 'session_expired' })
  t.same(await other.closed, { code: 4401, reason: 'session_expired' }, 'its other relays end too')
  t.same(await plain.socket(TRADING).closed, { code: 4401, reason: 'login_required' })
})

await test('a 401 for the one-time URL renews the token once; another one soon after it was accepted only refuses the socket', async (t) => {
  const { upstream, socket } = await startWorld(t, { ...RELAY, provider: { refreshTokens: true } })
  const other = await socket(TRADING).opened()
  const first = upstream.otpRequests[0]?.headers.authorization
  upstream.onOtp = (request, response) =>
    request.headers.authorization === first
      ? answerJson(response, 401, {})
      : answerJson(response, 200, { data: { url: upstream.otpUrl() } })
  const client = await socket(TRADING).opened()
  await until(() => upstream.open === 2)
  t.equal(upstream.otpRequests.length, 3, 'the server asks once more, with the new token')
  otp(401, {})(upstream)
  t.same(await socket(TRADING).closed, { code: 1013, reason: 'provider_unavailable' })
  t.equal(upstream.otpRequests.length, 4)
  for (const each of [client, other]) t.equal(each.socket.readyState, 1, 'the session goes on')
})

await test('a 401 for the one-time URL with a renewed token ends the session, and all its relays', async (t) => {
  const world = await startWorld(t, { ...RELAY, provider: { refreshTokens: true } })
  const other = await world.socket(TRADING).opened()
  otp(401, {})(world.upstream)
  t.same(await world.socket(TRADING).closed, { code: 4401, reason: 'session_expired' })
  t.equal(world.upstream.otpRequests.length, 3, 'upstream is asked once with each token')
  t.same((await other.closed).code, 4401)
  await world.quiet()
})

const URLS: [why: string, make: (good: string, host: string) => unknown][] = [
  ['at the pointer', (good) => ({ data: { url: good }, other: 'wss://evil.example/' })],
  ['elsewhere', (good) => ({ result: [{ socket: good }] })],
  ['twice the same', (good) => ({ a: good, b: good })],
  ['in a JSON string', (good) => ({ data: JSON.stringify({ url: good }) })],
  ['in a JSON string with an array', (good) => ({ data: ` ${JSON.stringify([good])}` })],
  ['the response itself', (good) => good],
  ['in another spelling', (good) => ({ data: { url: good.replace('ws:', 'WS:') } })],
]

await test('the one-time URL is found wherever upstream puts it in its response', async (t) => {
  const world = await startWorld(t, RELAY)
  for (const [why, make] of URLS) {
    world.upstream.onOtp = (_request, response) =>
      answerJson(response, 200, JSON.stringify(make(world.upstream.otpUrl(), world.upstream.host)))
    const client = await world.socket(TRADING).opened()
    const peer = await world.upstream.socket()
    peer.send('hello')
    t.same((await client.count(1)).length, 1, why)
    client.socket.close()
    await client.closed
  }
  const spent = world.upstream.upgrades.map(({ url }) => url)
  t.equal(new Set(spent).size, URLS.length, 'every URL is used once')
})
