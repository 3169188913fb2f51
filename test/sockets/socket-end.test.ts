import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { WebSocket } from 'ws'
import { BROWSER, UPSTREAM, type Ending } from '../../src/sockets/close-codes.ts'
import { SocketEnd } from '../../src/sockets/socket-end.ts'
import { wholeFrame } from '../../src/sockets/whole-frame.ts'
import { asRead, connection } from '../support/sockets/connection.ts'
import { frame } from '../support/sockets/raw-frames.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const ignore = (): void => undefined

/** A peer, the wire it writes to, and the client at the other end. */
async function connectedPeer(t: Test): Promise<{ peer: SocketEnd; wire: Socket; client: WebSocket }> {
  const { socket, wire, client } = await connection(t)
  const peer = new SocketEnd({ socket, wire }, BROWSER, { message: ignore, ended: ignore })
  t.teardown(() => peer.close())
  return { peer, wire, client }
}

await test('an end whose upstream has closed before anybody listened is over when it begins, once', async (t) => {
  const { socket, wire, client } = await connection(t)
  client.close(1000)
  await nextEvent(socket, 'close')
  const endings: Ending[] = []
  const end = new SocketEnd({ socket, wire }, UPSTREAM, { message: ignore, ended: (ending) => endings.push(ending) })
  end.begin()
  end.begin()
  t.match(endings, exactly({ own: { code: 1001 }, other: { code: 1013, reason: 'upstream_lost' }, why: 'closed' }))
  t.equal(endings[0]?.isFault, undefined)
})

await test('an end that its owner has closed reports nothing more', async (t) => {
  const { socket, wire, client } = await connection(t)
  const seen: string[] = []
  const events = { message: () => seen.push('a message'), ended: () => seen.push('an ending') }
  const end = new SocketEnd({ socket, wire }, UPSTREAM, events)
  const closed = nextEvent(client, 'close')
  client.send('still on its way')
  end.close()
  t.equal((await closed)[0], 1001)
  end.close({ code: 1011, reason: 'too late' })
  socket.emit('message', Buffer.from('late'), false)
  socket.emit('error', new Error('late'))
  t.same(seen, [])
})

await test('wholeFrame returns the frame of a message that was received in one piece, and nothing otherwise', async (t) => {
  for (const bytes of [0, 1, 125, 126, 290, 65_535]) {
    for (const opcode of [1, 2]) {
      const { head, payload } = asRead(opcode, bytes)
      const found = wholeFrame(payload, opcode === 2)
      t.ok(found?.equals(Buffer.concat([head, payload])), `${bytes} bytes`)
      t.equal(found?.buffer, payload.buffer, 'without a copy')
      t.equal(wholeFrame(payload, opcode === 1), undefined, 'the message has another type')
      t.equal(
        wholeFrame(asRead(opcode, bytes, false).payload, opcode === 2),
        undefined,
        'the first fragment of a message',
      )
      t.equal(wholeFrame(asRead(0, bytes).payload, opcode === 2), undefined, 'the last fragment of a message')
      t.equal(wholeFrame(Buffer.from(new ArrayBuffer(bytes)), opcode === 2), undefined, 'no header before the payload')
    }
  }
  t.equal(wholeFrame(asRead(2, 65_536).payload, true), undefined, 'a payload of 64 KiB or more')
  const { head, payload } = asRead(2, 290)
  t.equal(wholeFrame(payload.subarray(1), true), undefined, 'a payload without its first byte')
  t.equal(wholeFrame(payload.subarray(0, 289), true), undefined)
  const pool = Buffer.allocUnsafe(1).buffer
  const copy = Buffer.from(pool, pool.byteLength - 294, 294)
  copy.set(Buffer.concat([head, payload]))
  t.equal(wholeFrame(copy.subarray(4), true), undefined, 'a copy in the buffer pool of this process')
})

await test('a peer sends messages of one read in one write, and a message that came alone at once', async (t) => {
  const { peer, wire } = await connectedPeer(t)
  const isCorked = (message: Buffer): boolean => {
    peer.send(message, false, 1000)
    return wire.writableCorked > 0
  }
  const { payload } = asRead(1, 290)
  t.ok(isCorked(payload), 'more bytes of the same read follow')
  await nextTurn()
  t.equal(wire.writableCorked, 0)
  t.notOk(isCorked(Buffer.from(payload.buffer.slice(0, 3 + 4 + 290), 3 + 4)), 'the message is the last of its read')
  // An empty message has no position in its read, so it is treated as if more followed.
  t.ok(isCorked(Buffer.alloc(0)), 'an empty message')
  await nextTurn()
  t.equal(wire.writableCorked, 0)
})

await test('a peer watches the messages of one write from the one on that makes it large', async (t) => {
  const { peer } = await connectedPeer(t)
  let sent = 0
  peer.onSent = () => sent++
  const { payload } = asRead(1, 290)
  const watched = [1, 2, 3, 4, 5].map(() => peer.send(payload, false, 1000))
  t.same(watched, [false, false, false, true, true])
  await until(() => sent === 2, 'the last one has left')
})

await test('a peer watches a message that is large only with its header', async (t) => {
  const { peer, wire } = await connectedPeer(t)
  wire.cork()
  // The last of its read, so that it begins no batch.
  t.equal(peer.send(Buffer.from(new ArrayBuffer(1000)), true, 1000), true)
  t.ok(wire.writableLength > 1000)
  wire.uncork()
})

await test('if pings outpace pongs, a peer answers the first and then only the latest', async (t) => {
  const { peer, client } = await connectedPeer(t)
  const pongs: string[] = []
  client.on('pong', (data: Buffer) => pongs.push(data.toString()))
  for (const ping of ['first', 'second', 'latest']) peer.socket.emit('ping', Buffer.from(ping))
  await until(() => pongs.length === 2)
  t.same(pongs, ['first', 'latest'])
})

const text = (payload: string): Buffer => frame({ opcode: 1, payload: Buffer.from(payload), masked: false })

await test('a peer watches a small write only behind what still waits', async (t) => {
  const { peer, wire, client } = await connectedPeer(t)
  const received: string[] = []
  client.on('message', (data: Buffer) => received.push(data.toString()))
  let sent = 0
  peer.onSent = () => sent++
  peer.write(text('at once'), 1000)
  wire.cork()
  wire.write(text('waits'))
  peer.write(text('behind'), 1000)
  wire.uncork()
  await until(() => received.length === 3)
  t.same(received, ['at once', 'waits', 'behind'])
  t.equal(sent, 1)
})

await test('what waits for a peer counts with an overhead for each write, and as nothing once it has left', async (t) => {
  const { peer, wire } = await connectedPeer(t)
  let sent = 0
  peer.onSent = () => sent++
  const overheads = []
  wire.cork()
  const [start, end] = [text('xy').subarray(0, 3), Buffer.from('y')]
  for (const write of [
    () => peer.write(text('x'), 0),
    () => peer.send(Buffer.from('x'), false, 0),
    () => peer.writeParts(start, end),
  ]) {
    write()
    overheads.push(peer.waitingBytes - peer.bufferedBytes)
  }
  wire.uncork()
  const [one = 0] = overheads
  t.ok(one > 0)
  t.same(overheads, [one, 2 * one, 3 * one])
  await until(() => sent === 3)
  t.equal(peer.waitingBytes, 0)
})

await test('a peer that is closing gets no frames after the close frame', async (t) => {
  const { peer, wire } = await connectedPeer(t)
  peer.write(text('before'), 1000)
  peer.socket.close()
  const writes = t.capture(wire, 'write', wire.write.bind(wire))
  peer.write(text('after'), 1000)
  peer.write(text('after'), 0)
  peer.writeParts(text('after'), Buffer.alloc(0))
  t.same(writes(), [])
})

await test('a peer that is hung up on is read no more, and gets everything that waits', async (t) => {
  const { peer, client } = await connectedPeer(t)
  const payload = Buffer.alloc(32_000_000)
  peer.write(frame({ opcode: 2, payload, masked: false }), 0)
  t.ok(peer.bufferedBytes > 0, 'the kernel cannot take it at once')
  const received = nextEvent(client, 'message')
  peer.hangUp()
  t.ok(peer.socket.isPaused)
  const [message] = (await received) as [Buffer]
  t.equal(message.length, payload.length)
  await nextEvent(client, 'close')
})

await test('a peer whose control frames pile up in the middle of a message is hung up on once', async (t) => {
  const { peer, wire, client } = await connectedPeer(t)
  const gone = nextEvent(client, 'close')
  const before = wire.bytesRead
  client.send('the middle of a message', { fin: false })
  await until(() => wire.bytesRead > before)
  const listeners = wire.listenerCount('finish')
  // Of frames that are read together, those behind the last allowed one still arrive.
  for (let count = 0; count < 1000; count++) peer.socket.emit('pong', Buffer.alloc(125))
  t.equal(wire.listenerCount('finish'), listeners + 1, 'Node warns on stderr of more than ten')
  await gone
})

await test('a peer is silent since its last sign of life, without the time for which it was not read', async (t) => {
  const { peer, wire, client } = await connectedPeer(t)
  let now = Math.ceil(performance.now())
  t.intercept(performance, 'now', { value: () => now })
  const silentAfter = (ms: number): number => peer.heartbeat.silentMs((now += ms))
  const pong = () => peer.socket.emit('pong', Buffer.alloc(0))
  pong()
  for (const sign of [
    pong,
    () => peer.socket.emit('ping', Buffer.alloc(0)),
    () => peer.socket.emit('message', Buffer.alloc(0), true),
    () => peer.heartbeat.excuse(1000),
  ]) {
    t.equal(silentAfter(1000), 1000)
    sign()
    t.equal(silentAfter(0), 0)
  }
  silentAfter(1000)
  for (let count = 0; count < 2; count++) {
    peer.pause()
    now += 5000
  }
  peer.resume()
  t.equal(silentAfter(0), 1000)

  const more = async (): Promise<void> => {
    const before = wire.bytesRead
    client.send('the middle of a message', { fin: false })
    await until(() => wire.bytesRead > before)
  }
  await more()
  peer.heartbeat.checkBytes(now - 300)
  t.equal(silentAfter(0), 300, 'bytes that have come since the last check')
  peer.heartbeat.checkBytes(now)
  t.equal(silentAfter(0), 300, 'none have come')
  await more()
  pong()
  peer.heartbeat.checkBytes(now - 300)
  t.equal(silentAfter(0), 0)
})
