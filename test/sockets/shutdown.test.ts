import { connect } from 'node:net'
import { test, type Test } from 'tap'
import { HeldTimers } from '../support/time/held-timers.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

await test('a server that shuts down closes every socket with 1012, also one that reads nothing and one in its handshake', async (t) => {
  const { upstream, server, socket } = await startWorld(t, { ...RELAY, settings: { DRAIN_SECONDS: '2' } })
  const restarting = { code: 1012, reason: 'shutting_down' }
  const open = [await socket(PUBLIC).opened(), await socket(TRADING).opened()]
  // One browser reads nothing any more, and one still waits for upstream.
  const deaf = await socket(PUBLIC).opened()
  deaf.socket.pause()
  await until(() => upstream.open === 3)
  upstream.onOtp = () => undefined
  const waiting = socket(TRADING)
  await until(() => upstream.otpRequests.length === 2)
  // A handshake that is half sent when the server begins to stop.
  const late = connect(server.port, '127.0.0.1')
  await nextEvent(late, 'connect')
  late.write(`GET ${PUBLIC} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${server.url}\r\nUpgrade: websocket\r\n`)
  const response: Buffer[] = []
  late.on('data', (chunk: Buffer) => response.push(chunk))
  const lateIsOver = nextEvent(late, 'close')

  const stopped = server.close()
  for (const { closed } of [...open, waiting]) t.same(await closed, restarting)
  late.write('Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
  await until(() => Buffer.concat(response).includes('shutting_down'))
  t.match(Buffer.concat(response).toString('latin1'), /^HTTP\/1\.1 101 /)
  await stopped
  await lateIsOver
  deaf.socket.resume()
  t.same(await deaf.closed, restarting, 'the close frame waits until the browser reads on')
  t.equal(upstream.open, 0)
  await t.rejects(fetch(server.url))
  t.equal(server.app.server.initialConfig.pluginTimeout, 0, 'Fastify sets no limit of ten seconds to a drain')
})

/** A server that stops while an upstream has not read all orders of a page that has left. */
async function stopsUnread(t: Test, drainSeconds: string) {
  const { server, joined } = await startWorld(t, { ...RELAY, settings: { DRAIN_SECONDS: drainSeconds } })
  const { client, peer } = await joined(TRADING)
  const seen = { received: 0 }
  peer.on('error', () => undefined).on('message', () => void seen.received++)
  peer.pause()
  const order = `{"buy":1,"passthrough":{"x":"${'x'.repeat(20_000)}"}}`
  for (let sent = 0; sent < 40; sent++) client.socket.send(order)
  client.socket.close(1000)
  await client.closed
  return { seen, peer, stopped: server.close(), closed: nextEvent(peer, 'close') }
}

await test('orders that upstream has not read when a server stops do not reach it when that is gone', async (t) => {
  const { seen, peer, stopped, closed } = await stopsUnread(t, '2')
  await stopped
  peer.resume()
  await closed
  t.ok(seen.received < 40, `${seen.received} of 40 were received`)
})

await test('a server that stops waits for an upstream that reads late, and no longer for one whose connection fails', async (t) => {
  const waits = new HeldTimers(t, 'setTimeout', 31_000)
  const reads = await stopsUnread(t, '248')
  await until(() => waits.size === 1, 'it waits')
  reads.peer.resume()
  await reads.stopped
  t.equal(reads.seen.received, 40)
  const fails = await stopsUnread(t, '248')
  await until(() => waits.size === 1, 'it waits')
  fails.peer.terminate()
  await fails.stopped
  t.ok(fails.seen.received < 40)
  t.equal(waits.size, 0)
})
