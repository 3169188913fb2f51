import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { gateAlone, MOST, relayAlone, SLOW_MS } from '../support/sockets/relay-alone.ts'

await test('messages pass both ways as they are, and are counted, text messages also by their operation', (t) => {
  const { browser, upstream, traffic, operations } = relayAlone(t)
  t.equal(upstream.isRead, true)
  browser.says('{"buy":1}')
  browser.says('{"sell":1}', 10, true)
  upstream.says('answer')
  upstream.says('tick', 4, true)
  t.same(upstream.got, ['{"buy":1}', '{"sell":1} binary'])
  t.same(browser.got, ['answer', 'tick binary'])
  t.same(operations, ['buy'])
  t.same(traffic, { to_browser: { messages: 2, bytes: 10 }, to_upstream: { messages: 2, bytes: 19 } })
  t.end()
})

await test('a message to a peer that is closing is dropped and not counted', (t) => {
  const { browser, upstream, traffic } = relayAlone(t)
  browser.readyState = 2
  upstream.says('late')
  upstream.readyState = 2
  browser.says('late')
  t.same([browser.got, upstream.got], [[], []])
  t.same([traffic.to_browser.messages, traffic.to_upstream.messages], [0, 0])
  t.end()
})

await test('upstream waits while more than the limit waits for the browser, until less than half of it does', (t) => {
  const { browser, upstream, relay, timers, ends } = relayAlone(t)
  const beats = timers.delays
  browser.isSlow = true
  upstream.says('1', MOST - 512)
  t.equal(relay.waitingBytes, MOST)
  t.equal(upstream.isRead, true)
  upstream.says('2', MOST / 2 - 512)
  t.equal(upstream.isRead, false)
  t.same(timers.delays, [...beats, SLOW_MS])
  upstream.says('3', 1)
  t.same(timers.delays, [...beats, SLOW_MS], 'what was read already begins no other wait')
  browser.reads(1)
  t.equal(upstream.isRead, false)
  browser.reads(1)
  t.equal(upstream.isRead, true)
  t.same(timers.delays, beats)
  browser.reads(1)
  t.same([browser.got, ends], [['1', '2', '3'], []])
  t.end()
})

await test('exactly half of the limit is still too much to read on', (t) => {
  const { browser, upstream } = relayAlone(t)
  for (const [slow, fast] of [
    [browser, upstream],
    [upstream, browser],
  ] as const) {
    slow.isSlow = true
    fast.says('1', MOST)
    fast.says('2', MOST / 2 - 512)
    t.equal(fast.isRead, false)
    slow.reads(1)
    t.equal(fast.isRead, false)
    slow.reads(1)
    t.equal(fast.isRead, true)
  }
  t.end()
})

await test('a browser waits while more than the limit waits for upstream, for as long as upstream likes', (t) => {
  const { browser, upstream, relay, timers } = relayAlone(t)
  const beats = timers.delays
  upstream.isSlow = true
  browser.says('1', MOST)
  t.equal(relay.waitingBytes, MOST + 512)
  t.equal(browser.isRead, false)
  t.same(timers.delays, beats)
  upstream.reads(1)
  t.equal(browser.isRead, true)
  t.end()
})

await test('a browser that is slow for too long loses its relay', async (t) => {
  const { browser, upstream, timers, ends } = relayAlone(t)
  browser.isSlow = true
  upstream.says('1', MOST)
  timers.run()
  await nextTurn()
  t.same(ends, [[CLOSE.slowConsumer, undefined]])
  t.same(browser.got, ['1', 'close 4408 slow_consumer'])
  t.same(upstream.got, ['close 1001'])
  browser.reads(1)
})

await test('where the whole process holds too much, less may wait for each peer', (t) => {
  const asked: number[] = []
  const waiting = {
    mostOf: (bytes: number) => (asked.push(bytes), 6000),
    add: () => undefined,
    closing: () => undefined,
  }
  const { browser, upstream } = relayAlone(t, { waiting: waiting as never })
  browser.isSlow = true
  upstream.says('1', 6000)
  t.equal(upstream.isRead, false)
  t.same(asked, [MOST])
  t.end()
})

await test('a relay ends once: both peers are closed, its gate is left, and nothing passes any more', (t) => {
  const gate = gateAlone()
  const { browser, upstream, relay, timers, ends } = relayAlone(t, {
    gate,
    withReturn: (close) => ({ ...close, retryAfterSeconds: 9 }),
  })
  browser.isSlow = true
  upstream.says('1', MOST)
  browser.says('passes')
  upstream.emit('pong', Buffer.alloc(0))
  relay.end(CLOSE.restarting)
  relay.end(CLOSE.storeDown)
  t.same(ends, [[CLOSE.restarting, undefined]])
  t.same(timers.delays, [9000], 'upstream is to answer its close frame')
  t.equal(gate.isLeft, false)
  upstream.wire.emit('close')
  t.same(timers.delays, [])
  t.equal(gate.isLeft, true)
  browser.says('late')
  upstream.says('late')
  browser.reads(1)
  t.same(browser.got, ['1', 'close 1012 shutting_down;retry_after=9'])
  t.same(upstream.got, ['passes', 'close 1001'])
  t.end()
})

await test('upstream is cut off if it may not have read an order when the session or the store is gone, and only then', (t) => {
  for (const [close, isSlow, isHeard, isCut] of [
    [CLOSE.sessionExpired, true, true, true],
    [CLOSE.sessionExpired, false, false, true],
    [CLOSE.storeDown, true, true, true],
    [CLOSE.restarting, true, false, false],
    [CLOSE.sessionExpired, false, true, false],
  ] as const) {
    let watches = 0
    const onEnd = (): (() => void) => (watches++, () => undefined)
    const user = { isCurrent: () => true, confirm: async () => 'asked' as const, onEnd }
    const { browser, upstream, relay } = relayAlone(t, { user })
    upstream.isSlow = isSlow
    browser.says('order')
    if (isHeard) upstream.says('answer')
    relay.end(close)
    t.same(upstream.got, ['order', ...(isCut ? ['reset', 'terminate'] : []), 'close 1001'], close.reason)
    t.equal(watches, Number(close === CLOSE.restarting), 'a session that has ended is not watched')
  }
  t.end()
})

await test('the close of either peer is passed on, and only a fault of upstream is told as one', (t) => {
  const left = relayAlone(t)
  left.browser.emit('close', 1000, Buffer.from('bye'))
  t.same([left.browser.got, left.upstream.got], [['close 1000 bye'], ['close 1000 bye']])
  t.same(left.ends, [[{ code: 1000, reason: 'bye' }, undefined]])
  const closed = relayAlone(t)
  closed.upstream.emit('close', 3000, Buffer.from('done'))
  t.same([closed.browser.got, closed.upstream.got], [['close 3000 done'], ['close 1001']])
  t.equal(closed.ends[0]?.[1], undefined)
  const broken = relayAlone(t)
  broken.upstream.emit('error', Object.assign(new Error('broken'), { code: 'WS_ERR_INVALID_OPCODE' }))
  t.same(broken.ends, [[CLOSE.upstreamLost, 'WS_ERR_INVALID_OPCODE']])
  const violating = relayAlone(t)
  violating.browser.emit('error', Object.assign(new Error('broken'), { code: 'WS_ERR_INVALID_UTF8' }))
  t.same(violating.ends, [[{ code: 1007, reason: '' }, undefined]])
  t.end()
})

await test('a relay whose browser cannot be closed ends all the same, and closes upstream', (t) => {
  const { browser, upstream, relay, ends } = relayAlone(t)
  browser.close = () => {
    throw new TypeError('planted')
  }
  t.throws(() => relay.end(CLOSE.sessionExpired), /planted/)
  t.equal(upstream.got.length, 1)
  t.equal(ends.length, 1)
  t.end()
})
