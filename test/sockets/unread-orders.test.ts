import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { socketOptions } from '../../src/sockets/socket-options.ts'
import { gone } from '../support/upstream/raw-upstream.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { gateAlone } from '../support/sockets/relay-alone.ts'
import { flood, isolatedRelay, MANY, MESSAGE } from '../support/sockets/isolated-relay.ts'

type Checks = Parameters<typeof isolatedRelay> extends [Test, unknown?, ...infer Rest] ? Rest : never

const PATIENT = { heartbeatMs: 3_600_000 }

/** A relay whose browser has sent more than fits into all buffers on the way, since upstream does not read. */
async function unreadRelay(t: Test, ...checks: Checks) {
  const parts = await isolatedRelay(t, PATIENT, ...checks)
  const { browser, upstreamWire, ourWire } = parts
  const given = (): number => ourWire.bytesWritten - ourWire.writableLength
  upstreamWire.pause()
  flood(browser)
  // Some wait in this process, and more in the kernel than that of upstream takes.
  await until(() => ourWire.writableLength > 100_000 && given() > 1_000_000, 'upstream takes no more')
  return { ...parts, given }
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
    const { upstreamWire, given, relay, ended } = await unreadRelay(t)
    const before = given()
    relay.end(close)
    t.equal(await ended, close)
    await reads(upstreamWire)
    t.ok(upstreamWire.bytesRead < before, `${upstreamWire.bytesRead} of ${before} bytes have arrived`)
  })
}

/** A relay whose browser has sent more than the kernel of upstream takes, and less than that of the relay holds besides. */
async function keptRelay(t: Test, limits = PATIENT, ...checks: Checks) {
  const parts = await isolatedRelay(t, limits, ...checks)
  const { browser, upstreamWire, ourWire } = parts
  upstreamWire.pause()
  for (let count = 0; count < 60; count++) browser.send(Buffer.alloc(MESSAGE))
  await until(() => ourWire.bytesWritten > 60 * MESSAGE && ourWire.writableLength === 0, 'all have left this process')
  return { ...parts, given: ourWire.bytesWritten }
}

await test('orders that the kernel holds for a silent upstream are dropped when it is given up', async (t) => {
  const { upstreamWire, given, ended } = await keptRelay(t, { heartbeatMs: 1000 })
  t.equal(await within(ended, 'upstream is given up'), CLOSE.upstreamLost)
  await reads(upstreamWire)
  t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
})

await test('orders that only the kernel holds are dropped once the session has ended, unless upstream was heard since', async (t) => {
  const { upstreamWire, given, relay } = await keptRelay(t)
  relay.end(CLOSE.sessionExpired)
  await reads(upstreamWire)
  t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
  for (const answer of ['send', 'ping'] as const) {
    const { browser, upstream, relay: answered } = await isolatedRelay(t, PATIENT)
    browser.send('order')
    await nextEvent(upstream, 'message')
    const heard = answer === 'send' ? nextEvent(browser, 'message') : nextEvent(upstream, 'pong')
    upstream[answer]('answer')
    await heard
    answered.end(CLOSE.sessionExpired)
    const [code] = (await nextEvent(upstream, 'close')) as [number]
    t.equal(code, 1001, 'upstream gets a close frame')
  }
})

for (const [what, begins] of [
  ['the session has ended', (user: { end: () => void }) => user.end()],
  ['orders are paused', (_user: unknown, gate: ReturnType<typeof gateAlone>) => gate.close()],
] as const) {
  await test(`orders that still wait when a page has left do not reach upstream once ${what}`, async (t) => {
    const user = {
      isCurrent: () => true,
      confirm: async () => 'asked' as const,
      end: (): void => undefined,
      isLeft: false,
    }
    const onEnd = (end: () => void): (() => void) => {
      user.end = end
      return () => (user.isLeft = true)
    }
    const gate = gateAlone()
    const { upstreamWire, given, relay, ended } = await unreadRelay(t, gate, { ...user, onEnd })
    relay.end(CLOSE.restarting)
    t.equal(await ended, CLOSE.restarting)
    const before = given()
    begins(user, gate)
    await reads(upstreamWire)
    t.ok(upstreamWire.bytesRead < before, `${upstreamWire.bytesRead} of ${before} bytes have arrived`)
    await until(() => user.isLeft && gate.isLeft, 'nothing is watched any more')
  })
}

await test('orders that only the kernel holds when a page has left do not reach upstream once orders are paused', async (t) => {
  const gate = gateAlone()
  const { upstreamWire, given, relay } = await keptRelay(t, PATIENT, gate)
  relay.end(CLOSE.restarting)
  gate.close()
  await reads(upstreamWire)
  t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
  await until(() => gate.isLeft, 'nothing is watched any more')
})

for (const [what, isRead, isOpenAgain] of [
  ['does not answer a ping for a second after orders are paused, though it goes on sending', false, false],
  ['reads them', true, false],
  ['is asked no more, since orders are no longer paused', false, true],
] as const) {
  await test(`orders that only the kernel holds when orders are paused: upstream ${what}`, async (t) => {
    const doubts = new HeldTimers(t, 'setTimeout', 1000)
    const gate = gateAlone()
    const { browser, upstream, upstreamWire, ourWire, given, ended } = await keptRelay(t, PATIENT, gate)
    const tick = async (): Promise<void> => {
      const heard = nextEvent(browser, 'message')
      upstream.send('tick')
      await heard
    }
    await tick()
    gate.close()
    gate.close()
    t.equal(doubts.size, 1)
    // The answer to a ping that was sent before the orders.
    upstream.pong('0')
    await tick()
    if (isRead) {
      const asked = nextEvent(upstream, 'ping')
      upstreamWire.resume()
      await asked
      // It follows the pong.
      await tick()
      // What passes in a pause may be on its way when upstream is judged.
      upstreamWire.pause()
      const { bytesWritten } = ourWire
      browser.send('{"ping":1}')
      await until(() => ourWire.bytesWritten > bytesWritten, 'it has left this process')
    }
    gate.isClosed = !isOpenAgain
    doubts.run()
    await nextTurn()
    if (isRead || isOpenAgain) return t.equal(ourWire.destroyed, false)
    t.equal(await ended, CLOSE.upstreamLost)
    await reads(upstreamWire)
    t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
  })
}

await test('a session that ends at the moment in which upstream has closed the socket leaves no connection', async (t) => {
  const user = { isCurrent: () => true, confirm: async () => 'asked' as const }
  let [isLeft, end] = [false, (): void => undefined]
  const onEnd = (ends: () => void): (() => void) => {
    end = ends
    return () => (isLeft = true)
  }
  const { browser, upstream, ourWire, ended } = await isolatedRelay(t, PATIENT, undefined, { ...user, onEnd })
  const errors: Error[] = []
  ourWire.on('error', (error) => errors.push(error))
  browser.send('order')
  await nextEvent(upstream, 'message')
  upstream.close(1000)
  await ended
  end()
  await until(() => isLeft, 'nothing is watched any more')
  t.same(errors, [])
})

for (const [why, ms, close] of [
  ['nine seconds after a page has left', 9000, CLOSE.restarting],
  ['a second after the session has ended', 1000, CLOSE.sessionExpired],
] as const) {
  await test(`orders that still wait ${why} do not reach an upstream that goes on sending`, async (t) => {
    const limits = new HeldTimers(t, 'setTimeout', ms)
    const { browser, upstream, upstreamWire, given, relay } = await keptRelay(t)
    const heard = nextEvent(browser, 'message')
    upstream.send('tick')
    await heard
    relay.end(close)
    limits.run()
    await reads(upstreamWire)
    t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
    t.equal(limits.size, 0)
  })
}

await test('orders that still wait do not reach upstream when this process stands still until ws gives it up', async (t) => {
  const { closeTimeout } = socketOptions(MESSAGE)
  const [limits, closes] = [9000, closeTimeout].map((ms) => new HeldTimers(t, 'setTimeout', ms))
  const { upstreamWire, given, relay } = await keptRelay(t)
  relay.end(CLOSE.restarting)
  limits?.run()
  closes?.run()
  await reads(upstreamWire)
  t.ok(upstreamWire.bytesRead < given, `${upstreamWire.bytesRead} of ${given} bytes have arrived`)
})

await test('orders that still wait when a page has left reach an upstream that reads again', async (t) => {
  const { browser, upstream, upstreamWire, ended } = await unreadRelay(t)
  let got = 0
  upstream.on('message', () => got++)
  browser.close(1000)
  upstreamWire.resume()
  t.match(await within(ended, 'the relay has ended'), { code: 1000 })
  await gone(upstreamWire)
  t.equal(got, MANY)
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
  await until(() => ourBrowserWire.writableLength > 100_000, 'the browser takes no more')
  browserWire.end()
  t.match(await within(ended, 'the browser is gone'), { code: 1006 })
  await until(() => ourBrowserWire.destroyed, 'its connection is gone')
})
