import { test, type Test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'
import { replace } from '../support/time/replace.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

const HOUR_MS = 3_600_000

/** A page whose connection waits for 20 seconds, as the server has asked. */
async function waiting(t: Test) {
  const page = shown(t)
  await page.step({ is: 'time', ms: 0 })
  await page.works()
  await page.lose(4429, 'rate_limited;retry_after=20')
  const now = Date.now.bind(Date)
  const leftMs = page.waitsMs()
  /** Only the time of day is set: timers go on. */
  return { ...page, leftMs, setClock: (ms: number) => replace(t, Date, 'now', () => now() + ms) }
}

await test('a network that is back makes no wait longer, although the clock was set back', async (t) => {
  const { leftMs, setClock, step, pass, state } = await waiting(t)
  setClock(-HOUR_MS)
  await step({ is: 'page', event: 'online' })
  await pass(leftMs)
  t.equal(state(), 'connecting')
})

await test('a page that is shown again after its wait is over connects at once, and sets no negative timer', async (t) => {
  const { setClock, step, waitsMs, state } = await waiting(t)
  await step({ is: 'page', event: 'pagehide' })
  setClock(HOUR_MS)
  await step({ is: 'page', event: 'pageshow' })
  t.equal(waitsMs(), 0)
  await step({ is: 'time', ms: 0 })
  t.equal(state(), 'connecting')
})
