import { test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

/** How long a second is left to chance: half of it. */
const HALF_MS = 500

await test('the delay after a close code is what the server asks for, or what the code needs, and grows with every loss', async (t) => {
  for (const [code, reason, floorMs] of [
    [1009, '', 5000],
    [1011, '', 5000],
    [4408, '', 2000],
    [4429, '', 10_000],
    [4429, 'rate_limited;retry_after=20', 20_000],
    [1012, 'restart;retry_after=3', 3000],
  ] as const) {
    const { lose, works, waitsMs, pass, state, step } = shown(t)
    await step({ is: 'time', ms: 0 })
    await works()
    for (const growth of [1, 2, 4]) {
      t.equal(state(), 'open')
      await lose(code, reason)
      t.equal(waitsMs(), floorMs + growth * HALF_MS, `${code} ${reason}`)
      await pass(waitsMs() - 1)
      t.equal(state(), 'waiting')
      await pass(1)
      t.equal(state(), 'connecting')
      await works()
    }
    await pass(10_000)
    await lose(code, reason)
    t.equal(waitsMs(), floorMs + 8 * HALF_MS, 'it has worked for 10 seconds')
    await pass(waitsMs())
    await works()
    for (let seconds = 0; seconds < 11; seconds += 1) {
      await step({ is: 'socket', how: 'speaks' })
      await pass(1000)
    }
    await lose(code, reason)
    t.equal(waitsMs(), floorMs + HALF_MS, 'and for more')
  }
})

await test('a silent connection is sent a ping after 10 seconds, is stale 4 seconds later, and dropped after 4 more', async (t) => {
  const { page, works, pass, state, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  t.equal(page.pings, 1, 'a new connection is sent one at once')
  await pass(9000)
  t.equal(page.pings, 1)
  await pass(1000)
  t.equal(page.pings, 2)
  await pass(3000)
  t.equal(state(), 'open')
  await pass(1000)
  t.equal(state(), 'stale')
  t.equal(page.pings, 3)
  await pass(3000)
  t.equal(state(), 'stale')
  await pass(1000)
  t.match(page.socket.status(), { state: 'waiting', code: 1006, reason: '' })
})

await test('while the browser is offline, a connection has a second to be silent, and then 2 seconds twice', async (t) => {
  const { page, works, pass, state, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  await step({ is: 'page', event: 'offline' })
  t.equal(state(), 'stale')
  t.equal(page.pings, 2)
  await step({ is: 'socket', how: 'pongs' })
  t.equal(state(), 'open')
  await pass(1000)
  t.equal(page.pings, 3)
  await pass(1000)
  t.equal(state(), 'open')
  await pass(1000)
  t.equal(state(), 'stale')
  await pass(1000)
  t.equal(state(), 'stale')
  await pass(1000)
  t.equal(state(), 'waiting')
  await pass(1000)
  t.equal(state(), 'waiting', 'no connection is tried')
})

await test('a page that is offline when it would connect tries again after 30 seconds', async (t) => {
  const { lose, pass, waitsMs, state, works, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  await step({ is: 'page', event: 'offline' })
  await lose(1006)
  await pass(waitsMs())
  t.equal(waitsMs(), 30_000)
  await pass(29_999)
  t.equal(state(), 'waiting')
})

await test('a connection that does not open within 20 seconds is given up', async (t) => {
  const { page, pass, state, waitsMs, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  t.equal(state(), 'connecting')
  await pass(20_000)
  t.equal(state(), 'connecting')
  await pass(1000)
  t.match(page.socket.status(), { state: 'waiting', code: 1006, reason: '' })
  await step({ is: 'refuse' })
  await pass(waitsMs())
  t.match(
    page.socket.status(),
    { state: 'waiting', code: 1006, reason: '' },
    'like an address that the browser refuses',
  )
  page.client.close()
  t.match(page.socket.status(), { state: 'ended', code: 1000, reason: '' })
})

await test('a clock that jumps by more than 4 seconds, or back, makes an open connection stale', async (t) => {
  const { now } = Date
  let aheadMs = 0
  t.intercept(Date, 'now', { value: () => Reflect.apply(now, Date, []) + aheadMs })
  for (const [jumpMs, expected] of [
    [4000, 'open'],
    [4001, 'stale'],
    [-1000, 'open'],
    [-1001, 'stale'],
  ] as const) {
    const { pass, state, works, step } = shown(t)
    await step({ is: 'time', ms: 0 })
    await works()
    await pass(1000)
    aheadMs += jumpMs
    await pass(1000)
    t.equal(state(), expected, `${jumpMs} ms`)
  }
  const { lose, pass, state, works, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  await lose(4429, 'rate_limited;retry_after=20')
  aheadMs += 25_000
  await pass(1000)
  t.equal(state(), 'connecting', 'the timer of a machine that has slept is late')
})

await test('a connection that is refused before it has worked comes back later and later', async (t) => {
  const { lose, pass, waitsMs, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  for (const growth of [1, 2, 4, 8]) {
    await step({ is: 'socket', how: 'opens' })
    await lose(4429)
    t.equal(waitsMs(), 10_000 + growth * HALF_MS)
    await pass(waitsMs())
  }
})

await test('the latency is the middle one of the last five', async (t) => {
  const { page, works, pass, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  t.equal(page.socket.status().latencyMs, 0)
  for (const [tookMs, latencyMs] of [
    [100, 100],
    [300, 100],
    [200, 200],
    [900, 200],
    [800, 300],
  ] as const) {
    const { pings } = page
    while (page.pings === pings) await pass(1000)
    await pass(tookMs)
    await step({ is: 'socket', how: 'pongs' })
    t.equal(page.socket.status().latencyMs, latencyMs, `after ${tookMs} ms`)
  }
})

await test('a stale connection works once its ping is answered, or once a message arrives that has not waited while the machine slept', async (t) => {
  const { page, works, pass, state, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  await step({ is: 'page', event: 'visibilitychange' })
  t.equal(state(), 'open')
  await step({ is: 'page', event: 'online' })
  t.equal(state(), 'stale')
  t.equal(page.socket.status().retryAt, undefined)
  await pass(1000)
  await step({ is: 'socket', how: 'speaks' })
  t.equal(state(), 'stale')
  await pass(1)
  await step({ is: 'socket', how: 'speaks' })
  t.equal(state(), 'open')
})

await test('a page that is left has no connection, and connects within a second once it is shown again', async (t) => {
  const { page, works, pass, state, waitsMs, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  await works()
  await step({ is: 'page', event: 'pagehide' })
  t.equal(page.sockets.size, 0)
  t.equal(state(), 'waiting')
  await pass(60_000)
  t.equal(page.sockets.size, 0)
  await step({ is: 'page', event: 'pageshow' })
  t.equal(waitsMs(), HALF_MS)
  await pass(HALF_MS)
  t.equal(state(), 'connecting')
})

await test('a network that is back ends the wait for it, and no wait that the server has asked for', async (t) => {
  const { lose, works, pass, state, waitsMs, step } = shown(t)
  await step({ is: 'time', ms: 0 })
  for (const online of [0, 1, 2]) {
    await works()
    await lose(1006)
    if (online === 0) t.equal(waitsMs(), HALF_MS, 'a connection that has worked ends the delay of all')
    await step({ is: 'page', event: 'online' })
    t.equal(state(), 'waiting')
    t.equal(waitsMs(), HALF_MS)
    await pass(waitsMs())
  }
  await works()
  await lose(4429, 'rate_limited;retry_after=20')
  await pass(1000)
  const leftMs = waitsMs()
  t.ok(leftMs > 19_000)
  await step({ is: 'page', event: 'online' })
  t.equal(waitsMs(), leftMs)
  await pass(leftMs)
  t.equal(state(), 'connecting')
})

await test('a socket that must not be opened again ends', async (t) => {
  for (const code of [4403, 4404]) {
    const { page, lose, works, pass, step } = shown(t)
    await step({ is: 'time', ms: 0 })
    await works()
    await lose(code, 'forbidden_origin;x=1')
    t.match(page.socket.status(), { state: 'ended', code, reason: 'forbidden_origin' })
    await pass(60_000)
    t.equal(page.sockets.size, 0)
    t.equal(page.error, 'ended')
  }
})
