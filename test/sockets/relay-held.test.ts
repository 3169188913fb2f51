import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { MAX_DEAF_MS } from '../../src/sessions/index.ts'
import { standstill } from '../../src/time/standstill.ts'
import { gateAlone, MOST, readAlone, relayAlone, type Peer } from '../support/sockets/relay-alone.ts'
import { replace } from '../support/time/replace.ts'

const REFUSAL = readAlone('r'.repeat(6000))
const REFUSED = 'r'.repeat(6000)

await test('when orders are paused, the relay ends if one may wait for upstream, without sending it', (t) => {
  const gate = gateAlone()
  gate.isClosed = false
  const { browser, upstream, ends } = relayAlone(t, { gate })
  browser.says('order')
  gate.isClosed = true
  gate.close()
  t.same(ends, [], 'it has been sent')
  gate.isClosed = false
  upstream.isSlow = true
  browser.says('slow')
  gate.close()
  t.same(ends, [], 'the gate is open')
  gate.isClosed = true
  gate.close()
  gate.close()
  t.same(ends, [[CLOSE.upstreamLost, undefined]])
  t.same(upstream.got, ['order', 'slow', 'reset', 'terminate', 'close 1001'])
  t.same(browser.got, ['close 1013 upstream_lost'])
  t.end()
})

await test('a gate refuses a message, and the ones after it are judged as well', (t) => {
  const judged: unknown[] = []
  const gate = gateAlone((message, isBinary) => {
    judged.push([message.toString(), isBinary])
    return message.toString() === 'order' ? readAlone('refused') : 'passes'
  })
  const { browser, upstream } = relayAlone(t, { gate })
  browser.says('order')
  browser.says('read', 4, true)
  t.same([browser.got, upstream.got], [['refused'], ['read binary']])
  t.same(judged, [
    ['order', false],
    ['read', true],
  ])
  browser.readyState = 2
  browser.says('order')
  t.same(browser.got, ['refused'], 'it is closing')
  gate.isClosed = false
  browser.says('order')
  t.same(upstream.got, ['read binary', 'order'], 'while the gate is open nothing is judged')
  t.end()
})

await test('a browser that does not read its refusals is read no further, nor is upstream, until it has read half', (t) => {
  const gate = gateAlone((message) => (message.toString() === 'order' ? REFUSAL : 'passes'))
  const { browser, upstream, relay, timers, ends } = relayAlone(t, { gate })
  const beats = timers.delays.length
  browser.isSlow = true
  browser.says('order')
  t.same([browser.isRead, relay.waitingBytes], [true, 6512])
  browser.says('order')
  t.same([browser.isRead, upstream.isRead, timers.delays.length], [false, false, beats + 1])
  browser.says('read')
  browser.says('order')
  t.same([browser.got.length, upstream.got], [2, []])
  browser.reads(1)
  t.same([browser.isRead, upstream.isRead], [false, false])
  browser.reads(1)
  t.same([browser.got, upstream.got], [[REFUSED, REFUSED, REFUSED], ['read']])
  t.same([browser.isRead, upstream.isRead, timers.delays.length], [true, true, beats])
  browser.reads(1)
  t.same(ends, [])
  let judged = 0
  gate.judge = () => (judged++, new Promise<void>(() => undefined))
  browser.says('wait')
  upstream.says('1', 6000)
  browser.reads(1)
  t.equal(judged, 1, 'what waits for the gate is not judged because the browser reads')
  t.end()
})

await test('refusals begin no second wait where the browser is slow already, and exactly the limit is not too much', (t) => {
  const gate = gateAlone(() => REFUSAL)
  const { browser, upstream, timers } = relayAlone(t, { gate })
  const beats = timers.delays.length
  browser.isSlow = true
  upstream.says('1', MOST - 6000 - 2 * 512)
  browser.says('order')
  t.equal(browser.isRead, true)
  upstream.says('2', 100)
  t.equal(timers.delays.length, beats + 1)
  browser.says('order')
  t.same([browser.isRead, timers.delays.length], [false, beats + 1])
  t.end()
})

await test('messages that wait for the gate are judged again in order, and the browser is read on', async (t) => {
  let known: (() => void) | undefined
  const gate = gateAlone(() => new Promise<void>((resolve) => (known = resolve)))
  const { browser, upstream } = relayAlone(t, { gate })
  browser.says('1')
  browser.says('2', 1, true)
  t.same([browser.isRead, upstream.got], [false, []])
  upstream.says('answer')
  t.equal(browser.isRead, false, 'what the browser reads changes nothing')
  gate.judge = () => 'passes'
  known?.()
  await nextTurn()
  t.same([browser.isRead, upstream.got], [true, ['1', '2 binary']])
})

await test('a browser whose messages were held is read on only once upstream has read enough', async (t) => {
  let known: (() => void) | undefined
  const gate = gateAlone(() => new Promise<void>((resolve) => (known = resolve)))
  const { browser, upstream } = relayAlone(t, { gate })
  gate.isClosed = false
  upstream.isSlow = true
  browser.says('1', 6000)
  gate.isClosed = true
  browser.says('2')
  upstream.reads(1)
  t.equal(browser.isRead, false, 'it is still held')
  upstream.isSlow = false
  gate.isClosed = false
  known?.()
  await nextTurn()
  t.same([browser.isRead, upstream.got], [true, ['1', '2']])
})

/** The close of the browser arrives, which reads no more. */
function leaves(browser: Peer): void {
  browser.readyState = 2
  browser.emit('close', 1000, Buffer.from('bye'))
}

await test('a browser that leaves unread refusals behind is told no more, and what else it sent before passes', (t) => {
  const gate = gateAlone((message) => (message.toString() === 'order' ? REFUSAL : 'passes'))
  const { browser, upstream, ends } = relayAlone(t, { gate })
  browser.isSlow = true
  for (const text of ['order', 'order', 'read', 'order']) browser.says(text)
  t.same([browser.got, upstream.got, ends], [[REFUSED, REFUSED], [], []])
  leaves(browser)
  t.same(upstream.got, ['read', 'close 1000 bye'])
  t.same(browser.got, [REFUSED, REFUSED])
  t.same(ends, [[{ code: 1000, reason: 'bye' }, undefined]])
  t.end()
})

await test('nothing of a browser that has left passes if its session turns out to have ended', async (t) => {
  const user = { isCurrent: () => false, confirm: async () => 'asked' as const, onEnd: () => () => undefined }
  const { browser, upstream, relay, ends } = relayAlone(t, { user })
  browser.says('order')
  leaves(browser)
  t.same(ends, [])
  relay.end(CLOSE.sessionExpired)
  await nextTurn()
  t.same(upstream.got, ['close 1001'])
  t.same(ends, [[CLOSE.sessionExpired, undefined]])
})

/** A relay whose session is unknown until a test says so, and a clock of standstills. */
function unknownRelay(t: Parameters<typeof relayAlone>[0], answers: ('asked' | 'away' | 'deaf')[]) {
  const world = { now: 5000, isCurrent: false, asked: 0, passes: [] as number[] }
  replace(t, standstill, 'now', () => world.now)
  const user = {
    isCurrent: () => world.isCurrent,
    confirm: async () => {
      world.asked++
      world.now += world.passes.shift() ?? 0
      return answers.shift() ?? 'deaf'
    },
    onEnd: () => () => undefined,
  }
  return { world, ...relayAlone(t, { user }) }
}

await test('a message of a session that is not known waits until it is confirmed, and is asked about again', async (t) => {
  const { world, browser, upstream, ends } = unknownRelay(t, ['asked'])
  browser.says('order')
  t.same([browser.isRead, upstream.got], [false, []])
  world.isCurrent = true
  await nextTurn()
  t.same([world.asked, browser.isRead, upstream.got, ends], [1, true, ['order'], []])
})

await test('a message of a known session that may be an order is asked of the gate, and not of the store', (t) => {
  let asked = 0
  const user = { isCurrent: () => true, confirm: async () => (asked++, 'asked' as const), onEnd: () => () => undefined }
  const { browser, upstream } = relayAlone(t, { user, gate: gateAlone(() => readAlone('refused')) })
  browser.says('order')
  t.same([asked, browser.got, upstream.got], [0, ['refused'], []])
  t.end()
})

await test('while the store is away the messages that wait pass once, and the next one asks again', async (t) => {
  const { world, browser, upstream, ends } = unknownRelay(t, ['away', 'deaf'])
  browser.says('1')
  browser.says('2')
  await nextTurn()
  t.same([world.asked, upstream.got], [1, ['1', '2']])
  upstream.says('answer')
  browser.says('3')
  await nextTurn()
  t.same([world.asked, upstream.got], [2, ['1', '2', 'close 1001']])
  t.same(ends, [[CLOSE.storeDown, undefined]])
})

await test('a session that stays unknown for too long ends the relay, and one that was known meanwhile has all of the time again', async (t) => {
  const { world, browser, upstream, ends } = unknownRelay(t, ['asked', 'asked'])
  browser.says('1')
  world.isCurrent = true
  await nextTurn()
  world.now += 10 * MAX_DEAF_MS
  world.isCurrent = false
  browser.says('2')
  world.now += MAX_DEAF_MS
  t.equal(world.asked, 2)
  world.isCurrent = true
  await nextTurn()
  t.same([upstream.got, ends], [['1', '2'], []])
  const late = unknownRelay(t, ['asked', 'asked', 'asked'])
  late.world.passes = [MAX_DEAF_MS, 1]
  late.browser.says('1')
  await nextTurn()
  t.equal(late.world.asked, 2, 'exactly as long is not too long')
  t.same(late.ends, [[CLOSE.storeDown, undefined]])
})
