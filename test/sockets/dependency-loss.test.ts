import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import type { BrowserSocket } from '../support/browser-socket.ts'
import { answerJson } from '../support/scripted-upstream.ts'
import { joined, PUBLIC, relayWorld, TRADING } from '../support/relay-world.ts'
import { sandboxProcess } from '../support/sandbox-process.ts'
import { nextEvent, until } from '../support/until.ts'
import { logIn, testServer } from '../support/world.ts'

/** Asks, and has an answer. */
async function works(line: BrowserSocket): Promise<boolean> {
  const before = line.received.length
  line.socket.send('{"ping":1}')
  return (await line.count(before + 1)).length > before
}

await test('processes that are killed without a word', async (t) => {
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  // The provider in one process, in another what trading sockets lead to; market data comes from this one.
  const auth = await sandboxProcess(t, publicUrl)
  const trading = await sandboxProcess(t, publicUrl)
  const world = await relayWorld(t, {
    port,
    anonymous: true,
    settings: { AUTH_URL: auth.providerUrl, OTP_HOSTS: trading.upstreamHost, MAX_RELAYS: '4' },
  })
  const { upstream, browser } = world
  const url = `ws://${trading.upstreamHost}/trading/v1/options/ws/public`
  upstream.onOtp = (_request, response) => answerJson(response, 200, { data: { url } })
  upstream.onSocket = (socket) => socket.on('message', () => socket.send('{"pong":1}'))
  await logIn(browser, publicUrl)

  const market = await world.line(PUBLIC).opened()
  const lines = await Promise.all([1, 2, 3].map(() => world.line(TRADING).opened()))
  for (const line of lines) t.ok(await works(line))
  await trading.kill()
  for (const { closed } of lines) t.same(await closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await world.line(TRADING).closed, { code: 1013, reason: 'upstream_unreachable' })
  t.ok(await works(market), 'the other is untouched')

  await trading.restart()
  const again = await Promise.all([1, 2, 3].map(() => world.line(TRADING).opened()))
  for (const line of again) t.ok(await works(line), 'who comes back is served, and no place was lost')

  await auth.kill()
  for (const line of [market, ...again]) t.ok(await works(line), 'the provider is not needed')
  again[0]?.socket.close(1000)
  await again[0]?.closed
  t.ok(await works(await world.line(TRADING).opened()), 'nor for a new one')
})

await test('relays outlive the store for a while, and no longer', async (t) => {
  const world = await relayWorld(t, { redis: true, settings: { RELAY_STORE_GRACE_SECONDS: '2' } })
  const second = await testServer(t, {
    ...world.settings,
    PUBLIC_URL: world.server.url,
    RELAY_STORE_GRACE_SECONDS: '60',
  })
  const { line: short } = await joined(world, TRADING)
  const { line: long } = await joined(world, TRADING, { port: second.port })
  const { line: market, peer: stream } = await joined(world, PUBLIC)
  world.redis?.process.kill('SIGKILL')
  t.same(await short.closed, { code: 1013, reason: 'session_store_unavailable' })
  t.same(
    await world.line(TRADING).closed,
    { code: 1013, reason: 'session_store_unavailable' },
    'nor a new one',
  )
  t.equal(long.socket.readyState, 1, 'within its grace it stays')
  stream.send('on it goes')
  t.equal((await market.count(1)).length, 1, 'market data needs no session')
  for (const line of [long, market]) line.socket.close()
  await world.quiet()
})

await test('relays do not need the provider', async (t) => {
  const world = await relayWorld(t)
  const { line } = await joined(world, TRADING)
  await world.provider.close()
  const { line: another } = await joined(world, TRADING)
  for (const each of [line, another]) {
    each.socket.ping()
    await nextEvent(each.socket, 'pong')
    t.equal(each.socket.readyState, 1)
    each.socket.close()
  }
  await world.quiet()
})

await test('an upstream that dies takes its relays along, and nothing else', async (t) => {
  const world = await relayWorld(t)
  const lines = [await world.line(PUBLIC).opened(), await world.line(TRADING).opened()]
  await until(() => world.upstream.open === 2)
  await world.upstream.close()
  for (const line of lines) t.same(await line.closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await world.line(PUBLIC).closed, { code: 1013, reason: 'upstream_unreachable' })
  t.same(await world.line(TRADING).closed, { code: 1013, reason: 'upstream_unreachable' })
  await world.quiet()
})
