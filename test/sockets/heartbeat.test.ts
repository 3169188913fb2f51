import { test } from 'tap'
import type { WebSocket } from 'ws'
import { frame } from '../support/sockets/raw-frames.ts'
import { flood, MANY, isolatedRelay, stalled } from '../support/sockets/isolated-relay.ts'
import { nextEvent, until } from '../support/time/until.ts'

/** Resolves with true after so many pings, or with false once the relay has ended. */
async function pings(socket: WebSocket, count: number, ended: Promise<unknown>): Promise<boolean> {
  let alive = true
  void ended.then(() => (alive = false))
  let seen = 0
  socket.on('ping', () => seen++)
  await until(() => seen >= count || !alive)
  return alive
}

await test('an idle relay is kept while both peers answer pings', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t)
  t.same(await Promise.all([pings(browser, 8, ended), pings(upstream, 8, ended)]), [true, true])
  relay.end({ code: 1012, reason: 'shutting_down' })
  t.same(await ended, { code: 1012, reason: 'shutting_down' })
})

await test('a relay ends when a peer is silent for two heartbeats', async (t) => {
  const first = await isolatedRelay(t)
  first.browser.pause()
  const [code] = (await nextEvent(first.upstream, 'close')) as [number]
  t.equal(code, 1001)
  t.match(await first.ended, { code: 1006 }, 'a peer that is gone gets no close frame')

  const second = await isolatedRelay(t)
  second.upstream.pause()
  const [closeCode, reason] = (await nextEvent(second.browser, 'close')) as [number, Buffer]
  t.same([closeCode, reason.toString()], [1013, 'upstream_lost'])
})

await test('a peer that the relay does not read from is not treated as silent', async (t) => {
  const { browser, upstream, ended } = await isolatedRelay(t)
  // The browser sends but does not read. Upstream is paused meanwhile, and must not be treated as silent.
  browser.pause()
  const chatter = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(chatter))
  flood(upstream)
  await stalled(upstream)
  let alive = true
  void ended.then(() => (alive = false))
  let passed = 0
  upstream.on('message', () => passed++)
  await until(() => passed >= 40 || !alive)
  t.ok(alive, 'the relay is open after eight heartbeats')
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  clearInterval(chatter)
  t.ok(await pings(browser, 4, ended), 'the relay stays open afterwards')
})

await test('a peer that sends a long message slowly is not treated as silent', async (t) => {
  const { browser, upstream, upstreamWire, ended } = await isolatedRelay(t)
  upstream.pause()
  let alive = true
  void ended.then(() => (alive = false))
  // A frame of 4000 bytes, sent fifty bytes at a time. No pong can be sent in its middle.
  upstreamWire.write(frame({ opcode: 2, announced: 4000 }))
  let pieces = 0
  const chatter = setInterval(() => {
    if (++pieces <= 80) upstreamWire.write(Buffer.alloc(50))
  }, 10)
  t.teardown(() => clearInterval(chatter))
  let whole = false
  browser.on('message', (data: Buffer) => (whole = data.length === 4000))
  await until(() => whole || !alive)
  t.ok(alive && whole, 'the message arrives after eight heartbeats')
})

await test('a browser that reads slowly keeps its relay, although its pongs come late', async (t) => {
  const { browser, upstream, ended } = await isolatedRelay(t, { heartbeatMs: 2000 })
  let got = 0
  let alive = true
  void ended.then(() => (alive = false))
  // The browser reads at most 3 MB/s, and the kernel takes more from the relay only after a megabyte or so. More waits in front of
  // each ping.
  browser.on('message', () => {
    if (++got % 4 === 0) browser.pause()
  })
  const read = setInterval(() => browser.resume(), 20)
  t.teardown(() => clearInterval(read))
  let isPingedLate = false
  browser.on('ping', () => (isPingedLate ||= got > 500))
  flood(upstream)
  await until(() => isPingedLate || !alive)
  t.ok(alive)
})

await test('a browser that reads on within slowConsumerMs is not closed afterwards', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t, {
    slowConsumerMs: 3000,
    heartbeatMs: 200,
  })
  browser.pause()
  const chatter = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(chatter))
  flood(upstream)
  await until(() => relay.waitingBytes > 100_000)
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  clearInterval(chatter)
  t.ok(await pings(browser, 16, ended), 'the relay outlives the limit')
})

await test('the time for which a peer was paused is not counted as silence once it is read from again', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t)
  browser.pause()
  const chatter = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(chatter))
  // One message that exceeds the buffer, and nothing after it: upstream sends nothing once it is resumed.
  upstream.send(Buffer.alloc(16 * 1024 * 1024))
  await until(() => relay.waitingBytes > 100_000)
  let passed = 0
  upstream.on('message', () => passed++)
  await until(() => passed >= 40)
  browser.resume()
  await nextEvent(browser, 'message')
  t.ok(await pings(upstream, 4, ended))
})

await test('a process whose event loop was blocked does not end a relay whose peers sent something meanwhile', async (t) => {
  const { browser, upstream, ended } = await isolatedRelay(t)
  for (let round = 0; round < 3; round++) {
    // An immediate, so that the late heartbeat runs before anything is read.
    await new Promise((resolve) => void setImmediate(resolve))
    browser.send('sent before the pause')
    upstream.send('sent before the pause')
    // Longer than the silence that ends a relay.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    t.same(await Promise.all([pings(browser, 4, ended), pings(upstream, 4, ended)]), [true, true])
  }
})
