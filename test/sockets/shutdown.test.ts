import { connect } from 'node:net'
import { test } from 'tap'
import { PUBLIC, relayWorld, TRADING } from '../support/relay-world.ts'
import { nextEvent, until } from '../support/until.ts'

await test('a server that stops says so to everybody', async (t) => {
  const world = await relayWorld(t, { settings: { DRAIN_SECONDS: '2' } })
  const { upstream, server } = world
  const restarting = { code: 1012, reason: 'shutting_down' }
  const open = [await world.line(PUBLIC).opened(), await world.line(TRADING).opened()]
  // One that reads nothing any more, and one that still waits for upstream.
  const deaf = await world.line(PUBLIC).opened()
  deaf.socket.pause()
  await until(() => upstream.open === 3)
  upstream.onOtp = () => undefined
  const waiting = world.line(TRADING)
  await until(() => upstream.otpRequests.length === 2)
  // A handshake that is still on its way when the server has begun to stop.
  const late = connect(server.port, '127.0.0.1')
  await nextEvent(late, 'connect')
  late.write(`GET ${PUBLIC} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${server.url}\r\nUpgrade: websocket\r\n`)
  const answer: Buffer[] = []
  late.on('data', (chunk: Buffer) => answer.push(chunk))
  const lateIsOver = nextEvent(late, 'close')

  const stopped = server.close()
  for (const { closed } of [...open, waiting]) t.same(await closed, restarting)
  late.write(
    'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await until(() => Buffer.concat(answer).includes('shutting_down'))
  t.match(Buffer.concat(answer).toString('latin1'), /^HTTP\/1\.1 101 /)
  await stopped
  await lateIsOver
  deaf.socket.resume()
  t.same(await deaf.closed, restarting, 'it waits to be read')
  t.equal(upstream.open, 0)
  await t.rejects(fetch(server.url))
  t.equal(
    server.app.server.initialConfig.pluginTimeout,
    0,
    'nor does Fastify give up on a drain after ten seconds',
  )
})
