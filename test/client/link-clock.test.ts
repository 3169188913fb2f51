import { test, type Test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'
import { replace } from '../support/time/replace.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

const HOUR_MS = 3_600_000

/** A page whose connection waits for 20 seconds, as the server has asked. */
async function waiting(t: Test) {
  const now = Date.now.bind(Date)
  replace(t, performance, 'now', () => now())
  const page = shown(t)
  await page.step({ is: 'time', ms: 0 })
  await page.works()
  await page.lose(4429, 'rate_limited;retry_after=20')
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

await test('a page that is shown again after its clock was set back waits no longer than it would have', async (t) => {
  const { leftMs, setClock, step, pass, state } = await waiting(t)
  await step({ is: 'page', event: 'pagehide' })
  await pass(1000)
  setClock(-HOUR_MS)
  await step({ is: 'page', event: 'pageshow' })
  await pass(leftMs - 1001)
  t.equal(state(), 'waiting')
  await pass(1)
  t.equal(state(), 'connecting')
})

await test('a page that opens a socket again after its clock was set back waits no longer than it would have', async (t) => {
  const { page, leftMs, setClock, pass } = await waiting(t)
  page.socket.close()
  await pass(1000)
  t.equal(page.socket.status().state, 'ended')
  setClock(-HOUR_MS)
  page.client.publicSocket().close()
  await pass(1000)
  const socket = page.client.publicSocket()
  await pass(leftMs - 2001)
  t.equal(socket.status().state, 'waiting')
  await pass(1)
  t.equal(socket.status().state, 'connecting')
  t.equal(page.sockets.size, 1)
})
