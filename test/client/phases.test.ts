import * as fc from 'fast-check'
import { test } from 'tap'
import { becomePage, WalkedPage, type PageStep } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

/** Longer than any delay: the session of a page that hears nothing is checked every 5 minutes. */
const LONG_MS = 330_000
/** Longer than the checks after which the end of a session is believed. */
const SOON_MS = 30_000

const step: fc.Arbitrary<PageStep> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .constantFrom('pagehide', 'pagehide', 'pageshow', 'pageshow', 'online', 'online', 'offline', 'visibilitychange')
      .map((event): PageStep => ({ is: 'page', event })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('subscribe', 'subscribe', 'subscribe', 'check', 'close')
      .map((what): PageStep => ({ is: 'call', what })),
  },
  {
    weight: 5,
    arbitrary: fc
      .constantFrom('true', 'true', 'ends', 'proxy', 'rejected')
      .map((how): PageStep => ({ is: 'answer', how })),
  },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom('opens', 'opens', 'speaks', 'pongs', 'ends')
      .map((how): PageStep => ({ is: 'socket', how })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom(1000, 1006, 1006, 1006, 1009, 1012, 4408, 4429, 4401, 4403),
        fc.constantFrom('', 'rate_limited;retry_after=20'),
      )
      .map(([code, reason]): PageStep => ({ is: 'close', code, reason })),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom('log in', 'log in', 'log out').map((to): PageStep => ({ is: 'session', to })),
  },
  { weight: 2, arbitrary: fc.constantFrom('lead', 'lead', 'refuse').map((is): PageStep => ({ is })) },
  { weight: 5, arbitrary: fc.constantFrom(1, 600, 1000, 5000, 30_000).map((ms): PageStep => ({ is: 'time', ms })) },
)

becomePage()

/** Lets these things happen to a page, and then nothing but good. @returns what is wrong in the end; undefined if nothing is */
async function walk(steps: readonly PageStep[], hasLocks: boolean): Promise<string | undefined> {
  const page = new WalkedPage(hasLocks)
  const { client, socket } = page
  const isRight = (): boolean =>
    client.session.get().status === page.truth && page.socketsTo('/ws/session') === (page.truth === 'active' ? 1 : 0)
  for (const each of steps) await page.step(each)
  page.calm()
  await page.pass(LONG_MS)
  if (!isRight()) return `the session is ${client.session.get().status}`
  const { state } = socket.status()
  if (state !== 'open' && !(state === 'ended' && page.mayEnd)) return `the socket is ${state}`
  if (page.socketsTo('/ws/public') !== (state === 'open' ? 1 : 0)) return `the socket is ${state}, and another is open`
  // The page is told of a login by itself, and of the end of a session by nobody.
  for (const [to, ms] of [
    ['log in', SOON_MS],
    ['log out', LONG_MS],
    ['log in', SOON_MS],
  ] as const) {
    await page.step({ is: 'session', to })
    await page.pass(ms)
    if (!isRight()) return `after ${to}, the session is ${client.session.get().status}`
  }
  client.close()
  if (page.error !== 'ended') return `a stream of a closed client has the error ${page.error}`
  const { calls, asked } = page
  const before = asked.length
  void client.session.check()
  await page.pass(LONG_MS)
  if (page.calls > calls + 1 || asked.length > before) return 'a closed client calls the server'
  return page.sockets.size > 0 ? 'a closed client has a socket' : undefined
}

await test('whatever happens to a page, something owns the next step of its session and of its socket; a closed client does nothing more', async (t) => {
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 60, size: 'max' }),
    fc.boolean(),
    async (steps, hasLocks) => {
      const wrong = await walk(steps, hasLocks)
      if (wrong !== undefined) throw new Error(wrong)
    },
  )
  const { failed, seed, counterexample, errorInstance } = await fc.check(property, {
    numRuns: Number(process.env['RUNS'] ?? 100),
  })
  t.notOk(failed, `${seed} ${JSON.stringify(counterexample)} ${String(errorInstance)}`)
})
