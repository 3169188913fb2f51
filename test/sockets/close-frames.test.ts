import { once } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'tap'
import { frame, switchProtocols } from '../support/raw-frames.ts'
import { PUBLIC, relayWorld } from '../support/relay-world.ts'

const CLOSE = 8

await test('a close frame counts at once, though its sender keeps the connection open', async (t) => {
  const world = await relayWorld(t, { anonymous: true })
  const { upstream, server } = world
  const ours: Duplex[] = []
  const bye = frame({
    opcode: CLOSE,
    payload: Buffer.concat([Buffer.from([0x0f, 0xa0]), Buffer.from('bye')]),
  })
  upstream.onUpgrade = (request, socket) => {
    ours.push(socket.on('error', () => undefined))
    switchProtocols(request, socket)
  }
  for (const message of ['', '{"buy":1}']) {
    const line = await world.line(PUBLIC).opened()
    ours.at(-1)?.write(bye)
    // What it sends meanwhile goes nowhere, and the close says so.
    if (message !== '') line.socket.send(message)
    const startedAt = performance.now()
    t.same(await line.closed, { code: 4000, reason: 'bye' })
    t.ok(performance.now() - startedAt < 5000, 'it does not wait for the end of the connection')
    t.notOk(ours.at(-1)?.destroyed, 'which upstream has not closed yet')
  }

  upstream.onUpgrade = undefined
  const browser = connect(server.port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => browser.destroy())
  browser.write(
    `GET ${PUBLIC} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${server.url}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  const peer = await upstream.socket()
  const told = once(peer, 'close')
  browser.write(frame({ opcode: CLOSE, payload: Buffer.from([0x0b, 0xb8]), masked: true }))
  t.equal((await told)[0], 3000, 'upstream hears of a close of the browser')
  t.equal(
    [...(await world.metric('bff_relays')).values()].reduce((sum, count) => sum + count, 0),
    0,
  )
})
