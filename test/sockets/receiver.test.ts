import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { isMidMessage, onPeerClose, onTooLong, onUnfinished, readInTurns } from '../../src/sockets/receiver.ts'

/** A socket of ws, as far as its receiver says something. That ws itself has one like this is for the tests with real sockets. */
function socketWith(parts: object = {}) {
  const own = { _allowSynchronousEvents: true, dataMessage: () => undefined }
  const receiver = Object.assign(new EventEmitter(), own, parts)
  const socket = Object.assign(new EventEmitter(), { _receiver: receiver }) as unknown as WebSocket
  /** A message of one fragment. */
  const message = (data: Buffer): void => {
    receiver.dataMessage()
    receiver.emit('message', data)
  }
  return { socket, receiver, message, isAtOnce: (): unknown => Reflect.get(receiver, '_allowSynchronousEvents') }
}

await test('after 64 frames of a browser, of any kind, no more are handled in their turn of the event loop', async (t) => {
  const { socket, receiver, message, isAtOnce } = socketWith()
  readInTurns(socket)
  const empty = Buffer.alloc(0)
  for (let turn = 0; turn < 3; turn++) {
    const kinds = [() => message(empty), () => receiver.emit('ping', empty), () => receiver.emit('pong', empty)]
    for (let frame = 0; frame < 63; frame++) kinds[frame % 3]?.()
    t.equal(isAtOnce(), true)
    message(empty)
    t.equal(isAtOnce(), false)
    await nextTurn()
    t.equal(isAtOnce(), true, 'in the next turn')
  }
})

await test('a long message counts as as many frames as it has times 64 bytes, and one for itself', (t) => {
  for (const [bytes, isMore] of [
    [62 * 64, true],
    [63 * 64, false],
  ] as const) {
    const { socket, message, isAtOnce } = socketWith()
    readInTurns(socket)
    message(Buffer.alloc(bytes))
    t.equal(isAtOnce(), isMore, `${bytes} bytes`)
  }
  t.end()
})

await test('reads are watched only where a message may become larger than a limit, and tell of those that leave one unfinished', (t) => {
  for (const [most, isWatched] of [
    [65_536, false],
    [65_537, true],
  ] as const) {
    const parts = { _maxPayload: most, _messageLength: 0, _bufferedBytes: 0 }
    const { socket, receiver } = socketWith(parts)
    const wire = new EventEmitter()
    const told: number[] = []
    onUnfinished(socket, wire as Socket, 65_536, (more) => told.push(more))
    t.equal(wire.listenerCount('data'), Number(isWatched), `${most} bytes`)
    wire.emit('data', Buffer.alloc(1))
    Object.assign(receiver, { _bufferedBytes: 1 })
    wire.emit('data', Buffer.alloc(2))
    Object.assign(receiver, { _bufferedBytes: 0, _messageLength: 1 })
    wire.emit('data', Buffer.alloc(3))
    t.same(told, isWatched ? [2, 3] : [])
  }
  t.end()
})

await test('a peer is in the middle of a message as long as there are fragments of one', (t) => {
  t.equal(isMidMessage(socketWith({ _fragments: [] }).socket), false)
  t.equal(isMidMessage(socketWith({ _fragments: [Buffer.alloc(0)] }).socket), true)
  t.end()
})

await test('the close frame of a peer is told before its connection ends, and an end without one is told, too', (t) => {
  const { socket, receiver } = socketWith()
  const closes: unknown[][] = []
  onPeerClose(socket, (...close) => closes.push(close))
  receiver.emit('conclude', 1000, 'bye')
  t.same(closes, [[1000, 'bye']])
  socket.emit('close', 1006, '')
  t.same(closes[1], [1006, ''])
  t.end()
})

await test('a message that is too long is told before ws hears of it, and no other error is', (t) => {
  for (const [code, order] of [
    ['WS_ERR_UNSUPPORTED_MESSAGE_LENGTH', ['too long', 'ws']],
    ['WS_ERR_INVALID_UTF8', ['ws']],
  ] as const) {
    const { socket, receiver } = socketWith()
    const told: string[] = []
    receiver.on('error', () => told.push('ws'))
    onTooLong(socket, () => told.push('too long'))
    receiver.emit('error', Object.assign(new Error('not valid'), { code }))
    t.same(told, order)
  }
  t.end()
})
