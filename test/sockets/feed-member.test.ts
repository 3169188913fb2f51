import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { CLOSE, WITHOUT_CODE } from '../../src/sockets/close-codes.ts'
import { frameOf } from '../../src/sockets/feed/wire/frame-of.ts'
import type { OwnSocket } from '../../src/sockets/feed/browser/own-socket.ts'
import { memberHost, startMember, waitingOn } from '../support/feed/started-member.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'
import { nextEvent, until } from '../support/time/until.ts'

await test('the messages of a browser wait while one is answered, and are then taken in order', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  const release = member.hold()
  for (let count = 0; count < 5; count++) browser.send(`${count}`)
  await until(() => socket.isPaused, 'it is read no more')
  // As after every message that has been sent.
  member.relieve()
  t.same(taken, [])
  release()
  release()
  browser.send('5')
  await until(() => taken.length === 6)
  t.same(taken, ['0', '1', '2', '3', '4', '5'])
})

await test('messages do not wait for ever for what upstream does not answer', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  const release = member.hold(50)
  browser.send('0')
  await until(() => taken.length === 1, 'it is taken after the longest time')
  // The answer that comes all the same must not end the wait for another one.
  const releaseNext = member.hold()
  release()
  browser.send('1')
  await setImmediate()
  t.equal(socket.isPaused, true)
  t.same(taken, ['0'])
  releaseNext()
  await until(() => taken.length === 2)
  t.same(taken, ['0', '1'])
})

await test('a browser that leaves while its messages wait leaves nothing behind', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  const release = member.hold(50)
  browser.send('0')
  t.equal(socket.isPaused, true)
  browser.terminate()
  await until(() => taken.includes('left'), 'its end is seen after the longest time')
  release()
  t.ok(member.isOver)
})

await test('prices stay in order when a browser that reads late gets an answer in the middle of a batch', async (t) => {
  const { member, browser, host } = await startMember(t)
  const prices: number[] = []
  browser.on('message', (data: Buffer) => {
    if (data[0] !== 'p'.charCodeAt(0)) return
    prices.push(Number(data.toString().slice(1)))
  })
  browser.pause()
  let price = 0
  const next = (): void => member.outbox.deliver(frameOf(Buffer.from(`p${++price}`.padEnd(32_768))), 'a stream')
  await until(() => {
    for (let count = 0; count < 50; count++) next()
    return host.conflated.messages > 3
  }, 'prices give way to newer ones')
  host.batch.open()
  member.outbox.answer(frameOf(Buffer.from('an answer')))
  next()
  host.batch.flush()
  browser.resume()
  await until(() => prices.at(-1) === price, 'the newest price is the last')
  t.same(
    prices,
    prices.toSorted((one, other) => one - other),
  )
  t.ok(prices.length < price, `${price - prices.length} prices were left out`)
})

await test('nothing is read from a browser while too many of its requests wait for answers', async (t) => {
  const host = memberHost()
  const { member, socket } = await startMember(t, { ...host, limits: { ...host.limits, maxBufferedBytes: 1000 } })
  member.awaits(499)
  const answered = member.awaits(501)
  t.equal(socket.isPaused, false)
  const last = member.awaits(1)
  t.equal(socket.isPaused, true)
  answered()
  t.equal(socket.isPaused, true, 'half of it may wait')
  last()
  t.equal(socket.isPaused, true, 'the answer itself comes first')
  await until(() => !socket.isPaused)
})

await test('of a browser that one of its messages ends no later message is taken', async (t) => {
  const { member, socket, browser, taken } = await startMember(t, memberHost(), (member) => member.end(WITHOUT_CODE))
  const release = member.hold()
  // All are read at once.
  const { _socket: wire } = browser as WebSocket & { readonly _socket: Socket }
  wire.cork()
  for (const message of ['0', '1', '2']) browser.send(message)
  wire.uncork()
  await until(() => socket.isPaused)
  release()
  await until(() => taken.includes('left'))
  t.same(taken, ['0', 'left'])
})

await test('a browser that has sent 200 messages in a second is read no more until the next one, whatever it is sent', async (t) => {
  let now = 1_000_000
  t.intercept(performance, 'now', { value: () => now })
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const { member, socket, browser, taken } = await startMember(t)
  const all = Array.from({ length: 250 }, (_, count) => `${count}`)
  for (const message of all) browser.send(message)
  await until(() => socket.isPaused, 'it is read no more')
  // As after every message that has been sent.
  member.relieve()
  t.same(taken, all.slice(0, 201))
  t.equal(socket.isPaused, true)
  now += 1000
  seconds.run()
  await until(() => taken.length === all.length)
  t.same(taken, all)

  for (const message of all) browser.send(message)
  await until(() => seconds.size === 1, 'it must wait again')
  member.end(WITHOUT_CODE)
  t.equal(seconds.size, 0, 'nothing of it is left')
})

await test('a browser has SLOW_CONSUMER_SECONDS to read down to half of MAX_BUFFERED_BYTES, each time anew', async (t) => {
  const timers = new HeldTimers(t, 'setTimeout', 60_000)
  const host = memberHost()
  const limits = { ...host.limits, maxBufferedBytes: 1000 }
  const { member, browser, wire } = await startMember(t, { ...host, limits })
  const wait = waitingOn(wire, 1000)
  member.press()
  t.equal(timers.size, 0)
  for (const time of ['the first time', 'the second time']) {
    wait(1001)
    member.press()
    t.equal(timers.size, 1, time)
    wait(500)
    member.relieve()
    t.equal(timers.size, 1)
    wait(499)
    member.relieve()
    t.equal(timers.size, 0)
  }
  wait(1001)
  member.press()
  member.press()
  const closed = nextEvent(browser, 'close')
  timers.run()
  t.equal((await closed)[0], 4408)
})

await test('a browser from which nothing is read has that time, too, while less than MAX_BUFFERED_BYTES waits', async (t) => {
  const timers = new HeldTimers(t, 'setTimeout', 60_000)
  const host = memberHost()
  const limits = { ...host.limits, maxBufferedBytes: 1000 }
  const { member, browser, socket, wire } = await startMember(t, { ...host, limits })
  const wait = waitingOn(wire, 0)
  const answered = (bytes: number): void => {
    const done = member.awaits(1001)
    wait(bytes)
    done()
  }
  answered(500)
  await until(() => timers.size === 1, 'it has read too little')
  t.ok(socket.isPaused)
  wait(499)
  member.relieve()
  t.equal(timers.size, 0)
  t.notOk(socket.isPaused)
  answered(500)
  await until(() => timers.size === 1)
  const closed = nextEvent(browser, 'close')
  timers.run()
  t.equal((await closed)[0], 4408)
})

await test('a browser whose requests upstream does not answer, and from which nothing is read, is not kept for ever', async (t) => {
  const timers = new HeldTimers(t, 'setTimeout', 110_000)
  const host = memberHost()
  const limits = { ...host.limits, maxBufferedBytes: 1000 }
  const { member, browser, socket } = await startMember(t, { ...host, limits })
  for (let times = 0; times < 2; times++) {
    const done = [member.awaits(1001), member.awaits(1)]
    t.equal(timers.size, 1)
    for (const each of done) each()
    await until(() => !socket.isPaused)
    t.equal(timers.size, 0, 'it is read again')
  }
  member.awaits(1001)
  const closed = nextEvent(browser, 'close')
  timers.run()
  t.equal((await closed)[0], 1013)
  t.ok(member.isOver)
})

await test('a slow browser that leaves while its messages wait leaves no timer behind', async (t) => {
  const waits = new HeldTimers(t, 'setTimeout', 7000)
  const slow = new HeldTimers(t, 'setTimeout', 60_000)
  const stalled = new HeldTimers(t, 'setTimeout', 110_000)
  const departures = new HeldTimers(t, 'setTimeout', 9000)
  const host = memberHost()
  const { member, wire } = await startMember(t, { ...host, limits: { ...host.limits, maxBufferedBytes: 1000 } })
  member.hold(7000)
  waitingOn(wire, 1001)
  member.press()
  for (let count = 0; count < 2; count++) member.endLater({ code: 1013, reason: '' }, 9000)
  t.same([waits.size, slow.size, stalled.size, departures.size], [1, 1, 1, 1])
  member.end(WITHOUT_CODE)
  member.endLater({ code: 1013, reason: '' }, 9000)
  t.same([waits.size, slow.size, stalled.size, departures.size], [0, 0, 0, 0])
})

await test('a browser is read again once it has read an answer that the kernel could not take at once', async (t) => {
  const host = memberHost()
  const { member, socket, browser, taken } = await startMember(t, {
    ...host,
    limits: { ...host.limits, maxBufferedBytes: 200_000 },
  })
  member.outbox.answer(frameOf(Buffer.alloc(32_000_000)))
  t.ok(socket.isPaused, 'too much waits for it')
  browser.send('next')
  await until(() => taken.length === 1, 'its next message is taken')
})

await test('an own socket that opens while much waits for its browser is read once that has left', async (t) => {
  const host = memberHost()
  // As close to the limit of conflation as the settings allow.
  const { member, socket, wire } = await startMember(t, {
    ...host,
    limits: { ...host.limits, maxBufferedBytes: host.limits.conflateBytes + 1 },
  })
  let isRead = false
  const own = { isFull: false, pause: () => undefined, resume: () => (isRead = true), end: () => undefined }
  wire.cork()
  member.outbox.answer(frameOf(Buffer.alloc(host.limits.conflateBytes / 2 - 4)))
  socket.pong(Buffer.alloc(100))
  member.own = own as unknown as OwnSocket
  member.relieve()
  t.equal(isRead, false)
  wire.uncork()
  await until(() => isRead)
})

await test('a member whose end fails has left all the same', async (t) => {
  const { member, taken } = await startMember(t)
  replace(t, member.outbox, 'end', () => {
    throw new TypeError('planted')
  })
  t.throws(() => member.end(CLOSE.ourFault), /planted/)
  t.same(taken, ['left'])
})
