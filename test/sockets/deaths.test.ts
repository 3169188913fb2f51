import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import type { BrowserSocket } from '../support/browser-socket.ts'
import { answerJson } from '../support/scripted-upstream.ts'
import { PUBLIC, relayWorld, TRADING } from '../support/relay-world.ts'
import { sandboxProcess } from '../support/sandbox-process.ts'
import { logIn } from '../support/world.ts'

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
