import { once } from 'node:events'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { frame } from '../support/raw-frames.ts'
import { flood, MANY, isolatedRelay, stalled } from '../support/isolated-relay.ts'
import { until } from '../support/until.ts'

/** Resolves with true when so many pings have come before the relay ended. */
async function pings(socket: WebSocket, count: number, ended: Promise<unknown>): Promise<boolean> {
  let alive = true
  void ended.then(() => (alive = false))
  let seen = 0
  socket.on('ping', () => seen++)
  await until(() => seen >= count || !alive)
  return alive
}

await test('idle peers are pinged, and stay as long as they answer', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t)
  t.same(await Promise.all([pings(browser, 8, ended), pings(upstream, 8, ended)]), [true, true])
  relay.end({ code: 1012, reason: 'shutting_down' })
  t.same(await ended, { code: 1012, reason: 'shutting_down' })
})

await test('a peer that says nothing any more is gone', async (t) => {
  const first = await isolatedRelay(t)
  first.browser.pause()
  const [code] = (await once(first.upstream, 'close')) as [number]
  t.equal(code, 1001)
  t.match(await first.ended, { code: 1006 }, 'there is nobody to tell')

  const second = await isolatedRelay(t)
  second.upstream.pause()
  const [told, reason] = (await once(second.browser, 'close')) as [number, Buffer]
  t.same([told, reason.toString()], [1013, 'upstream_lost'])
})

await test('the clock stands still for a peer that is kept from talking', async (t) => {
  const { browser, upstream, ended } = await isolatedRelay(t)
  // It does not read, but talks: so it lives, and upstream, which cannot be heard meanwhile, must not be given up.
  browser.pause()
  const talk = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(talk))
  flood(upstream)
  await stalled(upstream)
  let alive = true
  void ended.then(() => (alive = false))
  let heard = 0
  upstream.on('message', () => heard++)
  await until(() => heard >= 40 || !alive)
  t.ok(alive, 'alive after eight heartbeats')
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  clearInterval(talk)
  t.ok(await pings(browser, 4, ended), 'and all is well afterwards')
})

await test('a peer in the middle of a long message is not silent', async (t) => {
  const { browser, upstream, upstreamWire, ended } = await isolatedRelay(t)
  upstream.pause()
  let alive = true
  void ended.then(() => (alive = false))
  // A frame of 4000 bytes, fifty at a time; no pong can come in between.
  upstreamWire.write(frame({ opcode: 2, announced: 4000 }))
  let pieces = 0
  const talk = setInterval(() => {
    if (++pieces <= 80) upstreamWire.write(Buffer.alloc(50))
  }, 10)
  t.teardown(() => clearInterval(talk))
  let whole = false
  browser.on('message', (data: Buffer) => (whole = data.length === 4000))
  await until(() => whole || !alive)
  t.ok(alive && whole, 'eight heartbeats later it is there')
})

await test('a browser that takes little at a time lives, though its pongs are long in coming', async (t) => {
  const { browser, upstream, ended } = await isolatedRelay(t, { heartbeatMs: 500 })
  let got = 0
  let alive = true
  void ended.then(() => (alive = false))
  // Some three megabytes a second. Our pings stand in the queue behind more than that.
  browser.on('message', () => {
    if (++got % 4 === 0) browser.pause()
  })
  const read = setInterval(() => browser.resume(), 20)
  t.teardown(() => clearInterval(read))
  let pinged = 0
  browser.on('ping', () => (pinged ||= got))
  flood(upstream)
  await until(() => pinged > 0 || !alive)
  t.ok(alive)
  t.ok(pinged > 200, `${pinged} messages came before the first ping`)
})

await test('a browser that reads on in time is not cut off later', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t, {
    slowConsumerMs: 1000,
    heartbeatMs: 200,
  })
  browser.pause()
  flood(upstream)
  await until(() => relay.bufferedBytes > 100_000)
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  t.ok(await pings(browser, 8, ended), 'longer than it would have had')
})

await test('the time for which a peer was kept from talking is not counted afterwards either', async (t) => {
  const { browser, upstream, relay, ended } = await isolatedRelay(t)
  browser.pause()
  const talk = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(talk))
  // One message that is too much, and nothing behind it: when upstream may talk again, it has nothing to say.
  upstream.send(Buffer.alloc(16 * 1024 * 1024))
  await until(() => relay.bufferedBytes > 100_000)
  let heard = 0
  upstream.on('message', () => heard++)
  await until(() => heard >= 40)
  browser.resume()
  await once(browser, 'message')
  t.ok(await pings(upstream, 4, ended))
})

await test('a process that was held up does not end a relay whose peers talked meanwhile', async (t) => {
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
