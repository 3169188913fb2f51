import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { breakOff, PendingResponses, pretendBusy, requestInProgress } from '../../src/http/http-socket.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'

/** A connection of Node's HTTP server, with what it keeps beside it, and a request on it with a body in chunks. */
function connected(t: Test) {
  const calls: string[] = []
  const parser = { incoming: null, resume: () => calls.push('parse'), onIncoming: () => 0 }
  const socket = Object.assign(new Socket(), { parser })
  socket.pause = () => (calls.push('pause'), socket)
  socket.resume = () => (calls.push('resume'), socket)
  t.teardown(() => socket.destroy())
  const request = new IncomingMessage(socket)
  const response = new ServerResponse(request)
  request.headers['transfer-encoding'] = 'chunked'
  return { socket, parser, request, response, calls, isHeld: () => Reflect.get(socket, '_paused') }
}

/** Its body, of which a test sends pieces of a byte. */
async function bodyOf(t: Test) {
  const world = connected(t)
  const timers = new ManualTimers(t)
  const { request, response } = world
  t.equal(new PendingResponses().begin(request, response), true)
  const read: number[] = []
  let isOver = false
  const send = (pieces: number): void => {
    for (let count = 0; count < pieces; count++) request.push(Buffer.from('x'))
  }
  const listen = async (): Promise<void> => {
    request.on('data', ({ length }: Buffer) => read.push(length)).on('end', () => (isOver = true))
    await nextTurn()
    world.calls.length = 0
  }
  return { ...world, timers, send, listen, read, isOver: () => isOver }
}

const ones = (count: number): number[] => Array<number>(count).fill(1)

await test('after 64 pieces of a body nothing more is read for as long as a connection can send them, and the rest comes together', async (t) => {
  const { send, listen, read, timers, calls, isHeld } = await bodyOf(t)
  await listen()
  for (let turn = 0; turn < 2; turn++) {
    send(63)
    t.same(calls, [])
    t.notOk(isHeld())
    send(37)
    t.same([calls, isHeld()], [['pause'], true])
    t.same(read, ones(64))
    await nextTurn()
    t.same(read, [...ones(64), 36])
    t.same(timers.delays, [5])
    timers.run()
    t.same(calls, ['pause', 'parse', 'resume'])
    t.notOk(isHeld())
    calls.length = 0
    read.length = 0
  }
})

await test('fewer pieces are handed on as they come, in any number of turns', async (t) => {
  const { send, listen, read, timers, calls } = await bodyOf(t)
  await listen()
  for (let turn = 0; turn < 3; turn++) {
    send(63)
    await nextTurn()
  }
  for (let turn = 0; turn < 65; turn++) {
    send(1)
    await nextTurn()
  }
  t.same([read, timers.delays, calls.includes('pause')], [ones(189 + 65), [], false])
  send(64)
  await nextTurn()
  t.same(timers.delays, [3.2], 'and no more than 64 in any')
})

await test('a connection that has ended before its turn is left alone', async (t) => {
  const { socket, send, timers } = await bodyOf(t)
  send(64)
  await nextTurn()
  Object.assign(socket, { parser: null })
  t.doesNotThrow(() => timers.run())
})

await test('a body of a known length is read as ever', (t) => {
  const { request, response } = connected(t)
  delete request.headers['transfer-encoding']
  new PendingResponses().begin(request, response)
  t.notOk(Object.hasOwn(request, 'push'))
  t.end()
})

await test('the end of a body comes behind all of its pieces', async (t) => {
  const { request, send, listen, read, isOver } = await bodyOf(t)
  await listen()
  send(70)
  request.push(null)
  t.same(read, [...ones(64), 6])
  await nextTurn()
  t.equal(isOver(), true)
})

await test('a body that nobody reads is not read on, unless all of it is there', async (t) => {
  for (const complete of [false, true]) {
    const { request, send, timers, calls } = await bodyOf(t)
    request.push(Buffer.alloc(request.readableHighWaterMark - 70))
    send(70)
    await nextTurn()
    request.complete = complete
    timers.run()
    t.same(calls, ['pause', 'parse', ...(complete ? ['resume'] : [])])
  }
})

await test('a client that sends more than 512 pieces in a turn though it has its response already loses its connection', async (t) => {
  for (const [isFinished, pieces, isLost] of [
    [true, 512, false],
    [true, 513, true],
    [false, 1000, false],
  ] as const) {
    const { response, socket, send, listen } = await bodyOf(t)
    await listen()
    Object.defineProperty(response, 'writableFinished', { value: isFinished })
    send(pieces)
    t.equal(socket.destroyed, isLost, `${pieces} pieces`)
    await nextTurn()
  }
})

await test('a rest that is to be dropped is read by turns, too', async (t) => {
  const { request, read, listen, send } = await bodyOf(t)
  await listen()
  request.pause()
  Reflect.apply(Reflect.get(request, '_dump') as () => void, request, [])
  await nextTurn()
  send(1)
  t.same(read, [1])
})

await test('sixteen requests of a connection may wait for their responses, and the next one ends it', async (t) => {
  const { socket, parser } = connected(t)
  const pending = new PendingResponses()
  const begin = (): [boolean, ServerResponse] => {
    const request = new IncomingMessage(socket)
    const response = new ServerResponse(request)
    return [pending.begin(request, response), response]
  }
  const waiting = Array.from({ length: 16 }, begin)
  t.ok(waiting.every(([isTaken]) => isTaken))
  await nextTurn()
  waiting[0]?.[1].emit('close')
  t.equal(begin()[0], true, 'one has its response')
  t.same([parser.onIncoming(), socket.destroyed], [0, false])
  t.equal(begin()[0], false)
  t.same([parser.onIncoming(), socket.destroyed], [-1, true], 'those behind it are not even parsed')
  Object.assign(socket, { parser: null })
  t.equal(begin()[0], false, 'one that is there already')
})

await test('64 requests of a connection are taken in a turn of the event loop, each after its response', async (t) => {
  const { socket } = connected(t)
  const pending = new PendingResponses()
  const begin = (): boolean => {
    const request = new IncomingMessage(socket)
    const response = new ServerResponse(request)
    const isTaken = pending.begin(request, response)
    response.emit('close')
    return isTaken
  }
  for (let turn = 0; turn < 2; turn++) {
    t.ok(Array.from({ length: 64 }, begin).every(Boolean))
    await nextTurn()
  }
  for (let turn = 0; turn < 66; turn++) {
    t.equal(begin(), true)
    await nextTurn()
  }
  t.equal(Array.from({ length: 65 }, begin).at(-1), false)
  t.equal(socket.destroyed, true)
})

await test('a connection that is to be spared is taken for busy, and then for what it was', (t) => {
  const { socket, response } = connected(t)
  const inProgress = () => Reflect.get(socket, '_httpMessage') as { finished: boolean } | null
  const end = pretendBusy(socket)
  t.same(inProgress(), { finished: false })
  end()
  t.equal(inProgress(), null)
  Object.assign(socket, { _httpMessage: response })
  response.finished = true
  const endOther = pretendBusy(socket)
  t.equal(response.finished, false)
  endOther()
  t.equal(response.finished, true)
  t.equal(inProgress(), response)
  t.end()
})

await test('the request whose headers came last is that of the parser, if there is one', (t) => {
  const { socket, parser, request } = connected(t)
  t.equal(requestInProgress(socket), undefined)
  Object.assign(parser, { incoming: request })
  t.equal(requestInProgress(socket), request)
  Object.assign(socket, { parser: null })
  t.equal(requestInProgress(socket), undefined)
  t.end()
})

await test('a response that breaks off is reset where the end of the connection would be its regular end', (t) => {
  for (const [version, expected] of [
    ['1.0', 'reset'],
    ['1.1', 'destroyed'],
  ] as const) {
    const { request, response, socket } = connected(t)
    request.httpVersion = version
    response.assignSocket(socket)
    const done: string[] = []
    socket.resetAndDestroy = () => (done.push('reset'), socket)
    response.destroy = () => (done.push('destroyed'), response)
    breakOff(response)
    t.same(done, [expected])
    response.detachSocket(socket)
    t.doesNotThrow(() => breakOff(response), 'one whose connection is gone')
  }
  t.end()
})
