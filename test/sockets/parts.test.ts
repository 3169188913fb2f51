import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { network } from '../../src/http/client-address.ts'
import { Caps } from '../../src/sockets/caps.ts'
import { codeLabel, fromBrowser, fromUpstream } from '../../src/sockets/close-codes.ts'
import { operationOf } from '../../src/sockets/relay/operations.ts'
import { Peer } from '../../src/sockets/peer.ts'
import { wholeFrame } from '../../src/sockets/whole-frame.ts'
import { frame } from '../support/raw-frames.ts'

const operation = (text: string): string => operationOf(Buffer.from(text))
const reason = (text: string): Buffer => Buffer.from(text)

await test('upstream codes as a browser gets them', async (t) => {
  t.same(fromUpstream(1000, reason('bye')), { code: 1000, reason: 'bye' })
  t.equal(fromUpstream(1005, reason('')), undefined)
  t.same(fromUpstream(1006, reason('')), { code: 1013, reason: 'upstream_lost' })
  t.same(fromUpstream(4399, reason('x')), { code: 4399, reason: 'x' })
  t.same(fromUpstream(4400, reason('')), { code: 4000, reason: '4400' })
  t.same(fromUpstream(4499, reason('x')), { code: 4000, reason: '4499 x' })
  t.same(fromUpstream(4500, reason('x')), { code: 4500, reason: 'x' })
  for (const letter of ['a', 'é', '€', '😀']) {
    const text = letter.repeat(123 / Buffer.byteLength(letter))
    const { reason: cut = '' } = fromUpstream(4401, reason(text)) ?? {}
    const bytes = Buffer.byteLength(cut)
    t.ok(bytes <= 123 && bytes > 123 - 4, `${bytes} bytes`)
    t.ok(`4401 ${text}`.startsWith(cut) && cut.isWellFormed(), 'no character is cut in two')
  }
})

await test('browser codes as upstream gets them', async (t) => {
  t.same(fromBrowser(1000, reason('bye')), { code: 1000, reason: 'bye' })
  t.same(fromBrowser(4401, reason('')), { code: 4401, reason: '' })
  t.equal(fromBrowser(1005, reason('')), undefined)
  t.same(fromBrowser(1006, reason('')), { code: 1001, reason: '' })
})

await test('close codes as labels are few', async (t) => {
  const labels = new Set<string>()
  for (let code = 1000; code < 5000; code++) labels.add(codeLabel({ code, reason: '' }))
  t.ok(labels.has('4401') && labels.has('3xxx') && labels.has('4xxx'))
  t.equal([...labels].filter((label) => Number(label) >= 3000).length, 5)
  t.equal(codeLabel(undefined), '1005')
})

await test('operations are recognised by name, whatever else a message is', async (t) => {
  t.equal(operation('{"ticks":"R_100","subscribe":1}'), 'ticks')
  t.equal(operation('{ "req_id": 3, "buy" : "x", "price": 10 }'), 'buy')
  t.equal(operation('{"passthrough":{"buy":1,"sell":[{"cancel":1}]},"time":1}'), 'time', 'not what is inside')
  t.equal(operation('{"passthrough":"{\\"buy\\":1}","balance":1}'), 'balance', 'nor what is in a string')
  t.equal(operation('{"proposal_open_contract":1}'), 'proposal_open_contract')
  for (const text of [
    '',
    '{',
    '"buy"',
    '"buy":1',
    '[]',
    '{"buy"',
    '{"unknown":1}',
    '{"__proto__":1}',
    '{"constructor":1}',
    'ÿ{]]]"buy":1',
    `{"${'x'.repeat(600)}":1,"buy":1}`,
  ]) {
    t.equal(operation(text), 'other', text.slice(0, 20))
  }
  for (const nasty of ['"\\', '"\\"', '{"', '[', '"a" ', '\\']) {
    t.type(operation(nasty.repeat(100_000)), 'string')
  }
})

await test('a client is an IPv4 address or an IPv6 /64', async (t) => {
  t.equal(network('192.0.2.1'), '192.0.2.1')
  t.equal(network('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(network('::FFFF:c000:201'), '192.0.2.1')
  t.equal(network('2001:db8::1'), network('2001:db8:0:0:ffff:ffff:ffff:ffff'))
  t.equal(network('2001:DB8:1:2::'), network('2001:db8:1:2:3:4:5:6'))
  t.not(network('2001:db8:1:2::'), network('2001:db8:1:3::'))
  t.equal(network('fe80::1%eth0'), network('fe80::2'))
  t.equal(network('1::2:3:4:5:6:7'), '1:0:2:3::/64')
})

await test('a place is given back once, however often', async (t) => {
  const caps = new Caps({
    maxRelays: 1,
    maxSessionSockets: 1,
    maxPerSession: 2,
    maxPublicPerIp: 1,
    publicHandshakesPerMinute: 0,
  })
  const leave = caps.acquireProcess()
  t.equal(caps.acquireProcess(), undefined)
  leave?.()
  leave?.()
  t.ok(caps.acquireProcess())
  t.equal(caps.acquireProcess(), undefined)
  const first = caps.acquireSession('a')
  t.ok(caps.acquireSession('a'))
  t.equal(caps.acquireSession('a'), undefined)
  t.ok(caps.acquireSession('b'), 'another session has its own')
  first?.()
  first?.()
  t.ok(caps.acquireSession('a'))
  t.equal(caps.acquireSession('a'), undefined, 'one was given back, not two')
})

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
