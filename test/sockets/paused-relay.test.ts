import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { isolatedRelay } from '../support/sockets/isolated-relay.ts'
import type { OrderGate } from '../../src/sockets/relay/order-gate.ts'
import { nextEvent, until, within } from '../support/time/until.ts'

/** A gate that stays as it is. */
const STAYS = { onClosed: () => () => undefined } as const
const REFUSAL = Buffer.from('r'.repeat(2000))
/** Most bytes of one read. */
const READ = 65_536

await test('a browser that does not read its refusals is read no further, and cut off as any slow one', async (t) => {
  let judged = 0
  const gate: OrderGate = { ...STAYS, isClosed: true, judge: () => (judged++, REFUSAL) }
  const { browser, relay, ended, ourBrowserWire } = await isolatedRelay(t, { slowConsumerMs: 500 }, gate)
  browser.pause()
  let sent = 0
  const shout = setInterval(() => {
    if (browser.bufferedAmount < 1_000_000) for (let count = 0; count < 500; count++, sent++) browser.send('{"buy":1}')
  }, 1)
  t.teardown(() => clearInterval(shout))
  const end = await ended
  t.match(end, { code: 4408 })
  t.ok(judged < sent, `${judged} of ${sent} were judged`)
  const { writableLength } = ourBrowserWire
  t.ok(
    writableLength > 100_000 && writableLength < 185_000,
    `${writableLength} bytes of refusals wait, and their overhead`,
  )
  t.ok(
    relay.waitingBytes < 210_000 + READ,
    `${relay.waitingBytes} bytes wait, of which one read may be from the browser`,
  )
})

await test('a browser that reads its refusals late gets all of them, and is read on', async (t) => {
  const gate: OrderGate = {
    ...STAYS,
    isClosed: true,
    judge: (message) => (message.toString() === 'ping' ? 'passes' : REFUSAL),
  }
  const { browser, upstream } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  let refusals = 0
  browser.on('message', () => refusals++)
  browser.pause()
  for (let count = 0; count < 3000; count++) browser.send('{"buy":1}')
  browser.send('ping')
  browser.resume()
  await until(() => refusals === 3000 && passed.length === 1)
  t.same(passed, ['ping'])
})

/** A gate at which messages of this kind wait until they are let pass, one after the other. */
function waitingGate(kind: RegExp): { gate: OrderGate; waits: (() => void)[] } {
  const waits: (() => void)[] = []
  const known = new Set<string>()
  const judge = (message: Buffer): 'passes' | Promise<void> => {
    const text = message.toString()
    if (!kind.test(text) || known.has(text)) return 'passes'
    return new Promise<void>((resolve) =>
      waits.push(() => {
        known.add(text)
        resolve()
      }),
    )
  }
  return { gate: { ...STAYS, isClosed: true, judge }, waits }
}

await test('messages that wait for a gate leave in order, and none is lost or passed twice', async (t) => {
  const { gate, waits } = waitingGate(/^wait/)
  const { browser, upstream } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  const all = ['a', 'wait 1', 'b', 'wait 2', 'c', 'd']
  for (const message of all) browser.send(message)
  await until(() => passed.length === 1 && waits.length === 1)
  waits[0]?.()
  await until(() => passed.length === 3 && waits.length === 2)
  t.same(passed, ['a', 'wait 1', 'b'])
  browser.send('e')
  waits[1]?.()
  await until(() => passed.length === 7)
  t.same(passed, [...all, 'e'])
})

await test('a message that comes after the pause was lifted does not overtake one that still waits', async (t) => {
  let release: (() => void) | undefined
  let isClosed = true
  const gate: OrderGate = {
    ...STAYS,
    get isClosed() {
      return isClosed
    },
    judge() {
      if (!isClosed) return 'passes'
      isClosed = false
      return new Promise<void>((resolve) => (release = resolve))
    },
  }
  const { browser, relay, upstream } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  // Read together, so that the second one comes although nothing more is read.
  const { _socket: wire } = browser as unknown as { _socket: { cork(): void; uncork(): void } }
  wire.cork()
  for (const message of ['first', 'second', 'third']) browser.send(message)
  wire.uncork()
  await until(() => release !== undefined)
  release?.()
  await until(() => passed.length === 3)
  t.same(passed, ['first', 'second', 'third'])
  t.equal(relay.waitingBytes, 0)
})

await test('a browser that closes at once loses nothing of what it sent before, although that waits for the gate', async (t) => {
  const { gate, waits } = waitingGate(/./)
  const { browser, upstream, ended } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  const closed = nextEvent(upstream, 'close')
  // Read together, since nothing more is read while a message waits.
  const { _socket: wire } = browser as unknown as { _socket: { cork(): void; uncork(): void } }
  wire.cork()
  for (const message of ['first', 'second']) browser.send(message)
  browser.close(1000, 'bye')
  wire.uncork()
  // Its close frame has been answered.
  await nextEvent(browser, 'close')
  t.same([passed, waits.length], [[], 1])
  waits[0]?.()
  await until(() => waits.length === 2)
  waits[1]?.()
  t.match(await ended, { code: 1000 })
  t.match(await closed, [1000, Buffer.from('bye')])
  t.same(passed, ['first', 'second'])
})

await test('a relay that ends while messages wait for its gate sends none of them', async (t) => {
  let release: (() => void) | undefined
  const gate: OrderGate = { ...STAYS, isClosed: true, judge: () => new Promise<void>((resolve) => (release = resolve)) }
  const { browser, upstream, relay } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  browser.send('one')
  await until(() => release !== undefined)
  const closed = new Promise((resolve) => void browser.once('close', resolve))
  relay.end({ code: 4401, reason: 'session_expired' })
  release?.()
  await within(closed, 'the browser is closed')
  t.same(passed, [])
})

await test('while the gate is open no message is judged', async (t) => {
  let judged = 0
  const gate: OrderGate = { ...STAYS, isClosed: false, judge: () => (judged++, 'passes') }
  const { browser, upstream } = await isolatedRelay(t, {}, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString()))
  for (let count = 0; count < 100; count++) browser.send(String(count))
  await until(() => passed.length === 100)
  t.equal(judged, 0)
})

await test('what upstream has not read when orders are paused never reaches it: the relay ends', async (t) => {
  let isClosed = false
  let close: (() => void) | undefined
  let isWatched = true
  const gate: OrderGate = {
    get isClosed() {
      return isClosed
    },
    judge: () => 'passes',
    onClosed(listener) {
      close = listener
      return () => (isWatched = false)
    },
  }
  const { browser, upstream, relay, ended } = await isolatedRelay(t, { heartbeatMs: 3_600_000 }, gate)
  const passed: string[] = []
  upstream.on('message', (data: Buffer) => passed.push(data.toString().slice(0, 5)))
  close?.()
  browser.send('first')
  await until(() => passed.length === 1, 'a relay without waiting messages goes on')
  upstream.pause()
  const order = 'x'.repeat(100_000)
  let sent = 0
  // What waits for a moment only has room in the sockets.
  const isStuck = async (): Promise<boolean> => {
    for (let looks = 0; looks < 20 && relay.waitingBytes > 0; looks++) await delay(1)
    return relay.waitingBytes > 0
  }
  while (!(await isStuck())) {
    browser.send(order)
    sent++
    await delay(1)
  }
  close?.()
  t.ok(relay.waitingBytes > 0, 'nothing happens while the gate is open')
  browser.send('final')
  await until(() => browser.bufferedAmount === 0)
  isClosed = true
  const gone = new Promise((resolve) => upstream.once('close', resolve))
  close?.()
  t.match(await ended, { code: 1013, reason: 'upstream_lost' })
  upstream.resume()
  await within(gone, 'upstream is closed')
  t.ok(passed.length - 1 < sent, `${passed.length - 1} of ${sent} orders have arrived`)
  t.notOk(passed.includes('final'))
  t.equal(isWatched, false)
})
