import { test } from 'tap'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { answerJson, ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

/** Whether a message gets a response. */
async function works(client: BrowserSocket): Promise<boolean> {
  const before = client.received.length
  client.socket.send('{"ping":1}')
  return (await client.count(before + 1)).length > before
}

await test('relays end with 1013 when upstream is lost, new ones get upstream_unreachable, and none depends on the provider', async (t) => {
  const [lost, back] = [await ScriptedUpstream.start(t), await ScriptedUpstream.start(t)]
  for (const each of [lost, back]) each.onSocket = (socket) => socket.on('message', () => socket.send('{"pong":1}'))
  const settings = { OTP_HOSTS: `${lost.host},${back.host}`, MAX_RELAYS: '4' }
  // Market data comes from another upstream than the trading sockets.
  const world = await startWorld(t, { ...RELAY, settings })
  const { upstream, provider } = world
  let url = lost.otpUrl()
  upstream.onOtp = (_request, response) => answerJson(response, 200, { data: { url } })
  upstream.onSocket = (socket) => socket.on('message', () => socket.send('{"pong":1}'))

  const market = await world.socket(PUBLIC).opened()
  const clients = await Promise.all([1, 2, 3].map(() => world.socket(TRADING).opened()))
  for (const client of clients) t.ok(await works(client))
  await lost.close()
  for (const { closed } of clients) t.same(await closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await world.socket(TRADING).closed, { code: 1013, reason: 'upstream_unreachable' })
  t.ok(await works(market), 'the public relay goes on')

  url = back.otpUrl()
  const again = await Promise.all([1, 2, 3].map(() => world.socket(TRADING).opened()))
  for (const client of again)
    t.ok(await works(client), 'new relays work once upstream is back, so every permit was released')

  await provider.close()
  for (const client of [market, ...again]) t.ok(await works(client), 'open relays go on without the provider')
  again[0]?.socket.close(1000)
  await again[0]?.closed
  t.ok(await works(await world.socket(TRADING).opened()), 'a new relay opens without the provider')

  await upstream.close()
  t.same(await market.closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await world.socket(PUBLIC).closed, { code: 1013, reason: 'upstream_unreachable' })
})

await test('without Redis a trading relay is closed once RELAY_STORE_GRACE_SECONDS are over, and a public relay goes on', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true, settings: { RELAY_STORE_GRACE_SECONDS: '2' } })
  const second = await world.instance({ RELAY_STORE_GRACE_SECONDS: '60' })
  const { client: short } = await world.joined(TRADING)
  const { client: long } = await world.joined(TRADING, { at: second })
  const { client: market, peer: stream } = await world.joined(PUBLIC)
  world.redis?.process.kill('SIGKILL')
  t.same(await short.closed, { code: 1013, reason: 'session_store_unavailable' })
  t.same(
    await world.socket(TRADING).closed,
    { code: 1013, reason: 'session_store_unavailable' },
    'a new trading relay is refused',
  )
  t.equal(long.socket.readyState, 1, 'a relay stays open within its grace')
  stream.send('on it goes')
  t.equal((await market.count(1)).length, 1, 'market data needs no session')
  for (const client of [long, market]) client.socket.close()
  await world.quiet()
})
