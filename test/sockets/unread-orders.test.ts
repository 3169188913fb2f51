import type { Socket } from 'node:net'
import { test, type Test } from 'tap'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { gone } from '../support/upstream/raw-upstream.ts'
import { until, within } from '../support/time/until.ts'
import { flood, isolatedRelay, MESSAGE, stalled } from '../support/sockets/isolated-relay.ts'

const PATIENT = { heartbeatMs: 3_600_000 }

/** A relay whose browser has sent more than fits into all buffers on the way, since upstream does not read. */
async function unreadRelay(t: Test) {
  const parts = await isolatedRelay(t, PATIENT)
  parts.upstreamWire.pause()
  flood(parts.browser)
  await stalled(parts.browser)
  return parts
}

/** It reads again, until its connection is closed. */
function reads(wire: Socket): Promise<void> {
  wire.on('error', () => undefined).resume()
  return gone(wire)
}

for (const [why, close] of [
  ['its session has ended', CLOSE.sessionExpired],
  ['the store is away for too long', CLOSE.storeDown],
] as const) {
  await test(`orders that the kernel holds for an upstream that does not read are dropped once ${why}`, async (t) => {
    const { upstreamWire, ourWire, relay, ended } = await unreadRelay(t)
    const given = ourWire.bytesWritten - ourWire.writableLength
    relay.end(close)
    t.equal(await ended, close)
    await reads(upstreamWire)
    t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
  })
}

await test('orders that the kernel holds for a silent upstream are dropped when it is given up', async (t) => {
  const { browser, upstreamWire, ourWire, ended } = await isolatedRelay(t, { heartbeatMs: 500 })
  upstreamWire.pause()
  // More than upstream's kernel takes without it, and less than that of the relay holds besides.
  for (let count = 0; count < 60; count++) browser.send(Buffer.alloc(MESSAGE))
  t.equal(await within(ended, 'upstream is given up'), CLOSE.upstreamLost)
  const given = ourWire.bytesWritten
  t.ok(given > 60 * MESSAGE, 'all of them had left this process')
  await reads(upstreamWire)
  t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
})

await test('an upstream that ends its half of the connection without a close frame, and does not read, is lost at once', async (t) => {
  const { upstreamWire, ourWire, ended } = await unreadRelay(t)
  upstreamWire.end()
  t.equal(await within(ended, 'upstream is lost'), CLOSE.upstreamLost)
  await until(() => ourWire.destroyed, 'its connection is gone')
  await reads(upstreamWire)
})

await test('an upstream that ends its half while it reads has got all that was sent to it', async (t) => {
  const { browser, upstream, upstreamWire, ended } = await isolatedRelay(t, PATIENT)
  const got: Buffer[] = []
  upstream.on('message', (data: Buffer) => got.push(data))
  browser.send('order')
  await until(() => got.length === 1)
  upstreamWire.end()
  t.equal(await within(ended, 'upstream is lost'), CLOSE.upstreamLost)
  t.same(got.map(String), ['order'])
})

await test('a browser that ends its half without a close frame, and does not read, is gone at once', async (t) => {
  const { upstream, ourBrowserWire, browserWire, ended } = await isolatedRelay(t, PATIENT)
  browserWire.pause()
  flood(upstream)
  await stalled(upstream)
  browserWire.end()
  t.match(await within(ended, 'the browser is gone'), { code: 1006 })
  await until(() => ourBrowserWire.destroyed, 'its connection is gone')
})
