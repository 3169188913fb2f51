import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { Peer } from '../../src/sockets/peer.ts'
import { wholeFrame } from '../../src/sockets/whole-frame.ts'
import { frame } from '../support/raw-frames.ts'

/** A payload as it stands in what was read from a connection, behind its head and before other bytes. */
function asRead(opcode: number, bytes: number, fin = true): { head: Buffer; payload: Buffer } {
  const whole = frame({ opcode, payload: Buffer.alloc(bytes, 'x'), masked: false, fin })
  const read = new Uint8Array(3 + whole.length + 5)
  read.set(whole, 3)
  const head = whole.length - bytes
  return { head: whole.subarray(0, head), payload: Buffer.from(read.buffer, 3 + head, bytes) }
}

await test('a frame is sent on as it came where it came whole, and only there', async (t) => {
  for (const bytes of [0, 1, 125, 126, 290, 65_535]) {
    for (const opcode of [1, 2]) {
      const { head, payload } = asRead(opcode, bytes)
      const found = wholeFrame(payload, opcode === 2)
      t.ok(found?.equals(Buffer.concat([head, payload])), `${bytes} bytes`)
      t.equal(found?.buffer, payload.buffer, 'without a copy')
      t.equal(wholeFrame(payload, opcode === 1), undefined, 'it is of the other type')
      t.equal(wholeFrame(asRead(opcode, bytes, false).payload, opcode === 2), undefined, 'a first piece')
      t.equal(wholeFrame(asRead(0, bytes).payload, opcode === 2), undefined, 'a last piece')
      t.equal(wholeFrame(Buffer.from(new ArrayBuffer(bytes)), opcode === 2), undefined, 'nothing before it')
    }
  }
  t.equal(wholeFrame(asRead(2, 65_536).payload, true), undefined, 'long ones are not worth it')
  const { head, payload } = asRead(2, 290)
  t.equal(wholeFrame(payload.subarray(1), true), undefined, 'a part of a payload')
  t.equal(wholeFrame(payload.subarray(0, 289), true), undefined)
  const pool = Buffer.allocUnsafe(1).buffer
  const copy = Buffer.from(pool, pool.byteLength - 294, 294)
  copy.set(Buffer.concat([head, payload]))
  t.equal(wholeFrame(copy.subarray(4), true), undefined, 'a copy among other bytes of this process')
})

await test('what was read at once is held together for one write, what came alone is not held', async (t) => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const peer = new WebSocket(`ws://127.0.0.1:${port}`)
  t.teardown(() => peer.terminate())
  const [socket, { socket: wire }] = (await once(server, 'connection')) as [WebSocket, IncomingMessage]
  const side = new Peer({ socket, wire }, false)
  const isHeld = (message: Buffer): boolean => {
    side.send(message, false, 1000)
    return wire.writableCorked > 0
  }
  const { payload } = asRead(1, 290)
  t.ok(isHeld(payload), 'other bytes follow')
  await nextTurn()
  t.equal(wire.writableCorked, 0)
  t.notOk(isHeld(Buffer.from(payload.buffer.slice(0, 3 + 4 + 290), 3 + 4)), 'it is the last of its read')
  // Of an empty one nobody can tell what follows: thousands of them come in one read.
  t.ok(isHeld(Buffer.alloc(0)), 'an empty one')
  await nextTurn()
  t.equal(wire.writableCorked, 0)
})
