import { mock } from 'node:test'
import * as fc from 'fast-check'
import { test } from 'tap'
import { serverClock } from '../../client/src/core/base/server-clock.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { pageClient } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const HOUR_MS = 3_600_000

/** What happens to the clocks, and how long it takes. */
const event = fc.record({
  is: fc.constantFrom('asked', 'told', 'set', 'sleep', 'wait'),
  /** Until the server tells its time. */
  thereMs: fc.integer({ min: 0, max: 3000 }),
  backMs: fc.integer({ min: 0, max: 3000 }),
  byMs: fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
})

await test('the time of the server is within its error, whatever happens to the clocks of the machine', (t) => {
  let runs = 0
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e12 }), fc.array(event, { maxLength: 30 }), (start, events) => {
      // What the clocks of the machine show, and the true one, which the server follows.
      let monotonicMs = 5000
      let [machineMs, trueMs] = [start + 0.25, start + HOUR_MS + 0.5]
      const pass = (ms: number): void => {
        monotonicMs += ms * (1 + 5e-5)
        machineMs += ms * (1 + 5e-5)
        trueMs += ms
      }
      const mocked = [mock.method(performance, 'now', () => monotonicMs), mock.method(Date, 'now', () => machineMs)]
      try {
        const clock = serverClock()
        let isKnown = false
        // Two jumps that cancel each other out cannot be seen.
        let hasJumped = false
        for (const { is, thereMs, backMs, byMs } of events) {
          const sentAt = performance.now()
          pass(is === 'wait' ? Math.abs(byMs) : thereMs)
          if (is === 'set' && !hasJumped) machineMs += byMs
          if (is === 'sleep' && !hasJumped) [machineMs, trueMs] = [machineMs + Math.abs(byMs), trueMs + Math.abs(byMs)]
          hasJumped = is === 'set' || is === 'sleep' || (is === 'wait' && hasJumped)
          const seconds = Math.floor(trueMs / 1000)
          pass(backMs)
          if (is === 'asked') clock.note(seconds, sentAt)
          else if (is === 'told') clock.note(seconds)
          isKnown ||= is === 'asked'
          const time = clock.get()
          if ((time === undefined) === isKnown) throw new Error('it is known from the first answer on')
          if (time && Math.abs(time.now - trueMs) > time.errorMs)
            throw new Error(`${time.now - trueMs} ms wrong, but said ${time.errorMs} ms`)
          runs++
        }
      } finally {
        for (const each of mocked) each.mock.restore()
      }
    }),
    { numRuns: 2000 },
  )
  t.ok(runs > 5000, `${runs} times`)
  t.end()
})

await test('the error becomes smaller with every answer, and a clock that is set makes it large only until the next one', (t) => {
  let [monotonicMs, machineMs] = [0, 0]
  mock.method(performance, 'now', () => monotonicMs)
  mock.method(Date, 'now', () => machineMs)
  t.teardown(() => mock.restoreAll())
  const clock = serverClock()
  t.equal(clock.get(), undefined)
  const startMs = 1_800_000_000_000
  const ask = (atMs: number): number => {
    machineMs += atMs - monotonicMs
    monotonicMs = atMs
    clock.note(Math.floor((startMs + monotonicMs) / 1000), monotonicMs - 40)
    return clock.get()?.errorMs ?? -1
  }
  const errors = [100, 10_450, 20_700, 30_950].map(ask)
  t.ok(
    errors.every((errorMs, index) => index === 0 || errorMs < Number(errors[index - 1])),
    errors.join(),
  )
  t.ok(Number(errors.at(-1)) < 150, `${errors.at(-1)} ms`)
  monotonicMs += 1_000_000
  machineMs += 1_000_000
  t.equal(Math.round(Number(clock.get()?.errorMs) - Number(errors.at(-1))), 100, 'a ten-thousandth of the time since')
  monotonicMs -= 1_000_000
  machineMs -= 1_000_000
  machineMs += HOUR_MS
  const { now = 0, errorMs = 0 } = clock.get() ?? {}
  t.ok(Math.abs(now - startMs - monotonicMs) < 150, 'the time does not jump')
  t.ok(errorMs > HOUR_MS, 'the machine may have slept')
  t.ok(ask(31_100) < 600)
  // The server itself was set.
  clock.note(1000, monotonicMs - 40)
  t.ok(Math.abs(Number(clock.get()?.now) - 1_000_500) < 600)
  t.end()
})

await test('client.serverNow(): undefined at first, then from the session, and nearer after a request for the time', async (t) => {
  const { server, browser } = await startWorld(t)
  const client = pageClient(t, browser, server.url)
  t.equal(client.serverNow(), undefined)
  await client.session.check()
  const first = client.serverNow()
  const isRight = (): boolean => {
    const time = client.serverNow()
    return time !== undefined && Math.abs(time.now - Date.now()) <= time.errorMs + 1
  }
  t.ok(isRight(), JSON.stringify(first))
  t.ok(first && first.errorMs >= 500)
  const market = client.publicSocket()
  // The beginning and the end of a second tell more than its middle.
  await until(async () => {
    await market.request({ time: 1 })
    if (!isRight()) t.fail(JSON.stringify([client.serverNow(), Date.now()]))
    return Number(client.serverNow()?.errorMs) < Number(first?.errorMs) - 100
  }, 'a smaller error')
})

await test('a page whose clock is an hour wrong shows the right time, and the end of the session by its own clock', async (t) => {
  const files = {
    'index.html': '<!doctype html><title>page</title><script type="module" src="/page.js"></script>',
    'page.js': `import { createClient } from '/client.js'
      globalThis.client = createClient()
      client.session.subscribe(() => undefined)`,
  }
  const { server } = await startWorld(t, { settings: { STATIC_DIR: t.testdir(files) } })
  const context = await testChromium(t, { bypassCSP: true })
  await context.addInitScript('globalThis.wrongMs = 3600000; const real = Date.now; Date.now = () => real() + wrongMs')
  const page = await context.newPage()
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForFunction(`globalThis.client?.session.get().status === 'active'`)
  /** How far off the page may be, by the clock of this machine before and after the answer. */
  const isRight = async (): Promise<boolean> => {
    const before = Date.now()
    const { now, errorMs } = await page.evaluate<{ now: number; errorMs: number }>('client.serverNow()')
    return now + errorMs >= before && now - errorMs <= Date.now() + 1
  }
  t.ok(await isRight())
  t.ok((await page.evaluate<number>('Date.now()')) > Date.now() + HOUR_MS / 2)
  const leftMs = (await page.evaluate<number>('client.session.get().expiresAt')) - Date.now() - HOUR_MS
  const { expires_at } = await page.evaluate<{ expires_at: number }>(`fetch('/auth/session').then((it) => it.json())`)
  t.ok(Math.abs(leftMs - (expires_at * 1000 - Date.now())) < HOUR_MS / 60, 'comparable with Date.now() of the page')
  // The user notices, and sets the clock.
  // Between the two readings the page may wait for its turn, but hardly each time.
  const ahead = 'Math.max(...Array.from({ length: 100 }, () => client.serverNow().now - performance.now()))'
  const before = await page.evaluate<number>(ahead)
  await page.evaluate('globalThis.wrongMs = 0')
  t.ok(await isRight())
  t.ok(Math.abs((await page.evaluate<number>(ahead)) - before) < 10)
  t.ok((await page.evaluate<number>('client.serverNow().errorMs')) > HOUR_MS)
  await page.evaluate('client.session.check()')
  t.ok(await isRight())
  t.ok((await page.evaluate<number>('client.serverNow().errorMs')) < HOUR_MS)
})
