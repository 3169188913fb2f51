import * as fc from 'fast-check'
import { test } from 'tap'
import { SessionModel, type Step } from '../support/session-model.ts'

const TABS = 3
/** Scenarios that run side by side, since one may have to wait for seconds. */
const AT_ONCE = 40
const SETTLED_MS = 8000

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(
    'log in',
    'land',
    'log out',
    'expire',
    'vanish',
    'look',
    'deliver',
    'deliver',
    'deliver',
    'deliver',
  ),
  which: fc.nat(7),
})

let names = 0

/** Plays a scenario, lets everything arrive, and says what is wrong in the end. */
async function play(steps: readonly Step[]): Promise<string | undefined> {
  const model = new SessionModel(`order-${++names}`, TABS)
  try {
    for (const each of steps) {
      model.step(each)
      // Promises and messages between tabs move on, or not: the next step decides.
      if (each.which % 2 === 0) await new Promise((resolve) => void setImmediate(resolve))
    }
    // The browser is left alone, on the page that its last login came back to.
    model.step({ do: 'land', which: 0 })
    const giveUpAt = Date.now() + SETTLED_MS
    let wrong: string | undefined = 'never looked'
    let rightSince = 0
    while (Date.now() < giveUpAt) {
      model.flush()
      await new Promise((resolve) => void setTimeout(resolve, 10))
      const states = model.tabs.map((tab) => tab.get().status)
      const isRight =
        states.every((state) => state === model.truth) && model.open === (model.truth === 'active' ? 1 : 0)
      wrong = isRight ? undefined : `${states.join()} with ${model.open} sockets, but ${model.truth}`
      rightSince = isRight ? rightSince || Date.now() : 0
      // Right, and nothing under way that could make it wrong again.
      if (isRight && Date.now() - rightSince > 3000) return undefined
    }
    return wrong
  } finally {
    model.close()
  }
}

await test('whatever arrives in whatever order, all tabs know the truth in the end', async (t) => {
  const scenarios = fc.array(fc.array(step, { maxLength: 25 }), { minLength: AT_ONCE, maxLength: AT_ONCE })
  await fc.assert(
    fc.asyncProperty(scenarios, async (all) => {
      const wrong = await Promise.all(all.map(async (steps) => [await play(steps), steps] as const))
      const found = wrong.find(([what]) => what !== undefined)
      if (found) throw new Error(`${found[0]} after ${JSON.stringify(found[1])}`)
    }),
    { numRuns: 5, endOnFailure: true },
  )
  t.pass()
})
