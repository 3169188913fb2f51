import * as fc from 'fast-check'
import { test } from 'tap'
import type { MessageFault } from '../support/client/tabs/browser.ts'
import { TabJourney, type Step } from '../support/client/tabs/tab-journey.ts'

const FAULTS: readonly MessageFault[] = ['lost', 'broken', 'late', 'twice', 'proxy']

const HOUR_MS = 3_600_000
const LOG_IN: Step = { does: 'log in', tab: 0 }
const WAIT: Step = { does: 'wait', ms: 5000 }

/** What happens to three tabs of a browser whose user is logged in. */
const JOURNEYS: Readonly<Record<string, readonly Step[]>> = {
  'another user logs in': [{ does: 'log in', tab: 1 }],
  'a tab logs out': [{ does: 'log out', tab: 1 }],
  'the operator ends the session': [{ does: 'end', reason: 'revoked' }],
  'nobody uses the session': [{ does: 'wait', ms: 1_820_000 }],
  'a tab extends the session': [
    { does: 'wait', ms: 1_700_000 },
    { does: 'extend', tab: 2 },
  ],
  'the machine sleeps': [{ does: 'sleep', ms: HOUR_MS }],
  'a page is shown again': [{ does: 'hide', tab: 0 }, { does: 'log out', tab: 1 }, WAIT, { does: 'show', tab: 0 }],
  'the tab that keeps the socket is closed': [
    { does: 'close', tab: 0 },
    { does: 'end', reason: 'gone' },
  ],
}

/** Walks, until all trouble is over. @returns how many messages there were, and what is wrong */
async function walk(steps: readonly Step[], hasLocks = true): Promise<{ messages: number; wrong: readonly string[] }> {
  const journey = new TabJourney(hasLocks)
  for (const step of steps) await journey.step(step)
  const { messages } = journey.browser
  await journey.end()
  return { messages, wrong: journey.wrong }
}

const before: readonly Step[] = [LOG_IN, WAIT]

for (const [name, steps] of Object.entries(JOURNEYS)) {
  await test(`${name} while one message is lost, late, cut or comes twice: each tab is told the truth, and each change once`, async (t) => {
    const { messages: first } = await walk(before)
    // A session that lasts has many messages, all of one kind.
    const faults = steps[0]?.does === 'wait' ? FAULTS.slice(0, 1) : FAULTS
    let walks = 0
    for (let at = 0, last = 1; at < last; at++) {
      for (const is of faults) {
        const { messages, wrong } = await walk([...before, { does: 'fault', is, in: at }, ...steps, WAIT])
        t.same(wrong, [], `message ${at} ${is}`)
        last = Math.max(last, messages - first)
        walks++
      }
    }
    t.comment(`${walks} walks`)
  })
}

const tab = fc.nat(4)
const does = <Does extends Step['does']>(...all: Does[]) => fc.constantFrom(...all)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: does('log in', 'log in', 'log out', 'call', 'extend', 'check', 'close', 'show', 'hide', 'freeze'),
      tab,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: does('end'),
      reason: fc.constantFrom('logout', 'revoked', 'refused', 'gone'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: does('open', 'announce', 'pass on', 'pass on') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: does('go offline', 'go online', 'go online', 'stop server', 'start server', 'start server'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: does('refuse'),
      code: fc.constantFrom(0, 0, 1006, 1008, 1013, 4401, 4429),
      reason: fc.constantFrom('', 'rate_limited;retry_after=20'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: does('lose'), code: fc.constantFrom(1001, 1006, 1012, 1013, 4401, 4408) }),
  },
  { weight: 2, arbitrary: fc.record({ does: does('fault'), is: fc.constantFrom(...FAULTS), in: fc.nat(6) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      does: does('wait'),
      ms: fc.constantFrom(5, 25, 100, 700, 1500, 3000, 10_000, 60_000, 301_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: does('sleep'),
      ms: fc.constantFrom(3000, 60_000, 119_000, 600_000, HOUR_MS, 50 * HOUR_MS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: does('set clock'),
      ms: fc.constantFrom(5000, -5000, 90_000, -90_000, HOUR_MS, -HOUR_MS, 250 * HOUR_MS, -250 * HOUR_MS),
    }),
  },
) as fc.Arbitrary<Step>

await test('whatever happens to the tabs of a browser, each is told the truth, and each change once, and none leaves anything behind', async (t) => {
  const some = fc.array(step, { maxLength: 25, size: 'max' })
  const hasLocks = fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) })
  const property = fc.asyncProperty(some, hasLocks, async (...all) => {
    const { wrong } = await walk(...all)
    if (wrong.length > 0) throw new Error(wrong.slice(0, 3).join('; '))
  })
  const { failed, seed, counterexample, errorInstance } = await fc.check(property, {
    numRuns: Number(process.env['RUNS'] ?? 100),
    ...(process.env['SEED'] !== undefined && { seed: Number(process.env['SEED']) }),
  })
  t.notOk(failed, `SEED=${seed} ${JSON.stringify(counterexample)} ${String(errorInstance)}`)
})

const KNOWN: Readonly<Record<string, readonly Step[]>> = {
  'tabs whose machine has slept hear at once of an end elsewhere': [
    LOG_IN,
    WAIT,
    { does: 'sleep', ms: 600_000 },
    { does: 'wait', ms: 10_000 },
    { does: 'end', reason: 'revoked' },
    { does: 'wait', ms: 20_000 },
  ],
  'what the session socket of a replaced session still brings does not bring that session back': [
    LOG_IN,
    { does: 'wait', ms: 10_000 },
    { does: 'lose', code: 1001 },
    { does: 'fault', is: 'late', in: 3 },
    { does: 'log in', tab: 1 },
    WAIT,
  ],
  'no tab says that it is logged out while the cookie of the next login is on its way': [
    LOG_IN,
    { does: 'wait', ms: 400_000 },
    { does: 'log in', tab: 1 },
    WAIT,
  ],
  'the answer to a logout that arrives after the login of another user is no end of that session': [
    { does: 'log out', tab: 2 },
    { does: 'hide', tab: 2 },
    LOG_IN,
    WAIT,
  ],
  'the answer to a logout that arrives while a page that Back has shown asks for the session hides no login of another tab':
    [
      LOG_IN,
      WAIT,
      { does: 'log out', tab: 0 },
      { does: 'hide', tab: 0 },
      { does: 'log in', tab: 1 },
      WAIT,
      { does: 'show', tab: 0 },
      { does: 'wait', ms: 20_000 },
    ],
  'a leader that cannot ask when it hears of a login does not tell the page of that login that it is over': [
    LOG_IN,
    WAIT,
    { does: 'log out', tab: 0 },
    WAIT,
    { does: 'log in', tab: 1 },
    { does: 'pass on' },
    { does: 'stop server' },
    WAIT,
  ],
}

for (const [name, steps] of Object.entries(KNOWN)) {
  await test(name, async (t) => t.same((await walk(steps)).wrong, []))
}
