import * as fc from 'fast-check'
import { test } from 'tap'
import { SessionModel, type Step } from '../support/client/session-model.ts'

const TABS = 3
/** Number of scenarios that run concurrently, since each takes several seconds. */
const AT_ONCE = 100
/** A server that could not tell is asked again later and later: after five failures up to half a minute later. */
const SETTLED_MS = 60_000

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(
    'log in',
    'land',
    'log out',
    'expire',
    'vanish',
    'check',
    'fail',
    'deliver',
    'deliver',
    'deliver',
    'deliver',
  ),
  which: fc.nat(7),
})

let names = 0

/** Runs a scenario and delivers every message. @returns what is wrong in the end; undefined if nothing is */
async function play(steps: readonly Step[]): Promise<string | undefined> {
  const model = new SessionModel(`order-${++names}`, TABS)
  try {
    for (const each of steps) {
      model.step(each)
      // Before half of the next steps, promises settle and messages between tabs arrive.
      if (each.which % 2 === 0) await new Promise((resolve) => void setImmediate(resolve))
    }
    // In the end, the browser shows the page that its last login returned to.
    model.step({ do: 'land', which: 0 })
    const giveUpAt = Date.now() + SETTLED_MS
    let wrong: string | undefined = 'never checked'
    let rightSince = 0
    while (Date.now() < giveUpAt) {
      model.flush()
      await new Promise((resolve) => void setTimeout(resolve, 10))
      const states = model.tabs.map((tab) => tab.get().status)
      const isRight =
        states.every((state, index) => state === model.truth && model.shown[index] === model.session) &&
        model.open === (model.truth === 'active' ? 1 : 0)
      const told = `${states.join()} showing ${model.shown.join()} with ${model.open} sockets`
      wrong = isRight ? undefined : `${told}, but ${model.truth} ${model.session}`
      rightSince = isRight ? rightSince || Date.now() : 0
      // For three seconds, no delayed check has changed the state.
      if (isRight && Date.now() - rightSince > 3000) return undefined
    }
    return wrong
  } finally {
    model.close()
  }
}

await test('a tab that learns too late that it was logged in hears that this is over', async (t) => {
  const steps: Step[] = [
    { do: 'check', which: 4 },
    { do: 'log in', which: 4 },
    { do: 'land', which: 2 },
    { do: 'check', which: 7 },
    { do: 'expire', which: 3 },
  ]
  t.equal(await play(steps), undefined)
})

await test('a tab that finds a session although its end was told tells the tab that keeps the socket', async (t) => {
  const steps: Step[] = [
    { do: 'log out', which: 7 },
    { do: 'log in', which: 5 },
    { do: 'deliver', which: 3 },
    { do: 'deliver', which: 1 },
    { do: 'land', which: 6 },
    { do: 'vanish', which: 1 },
    { do: 'deliver', which: 6 },
    { do: 'log in', which: 2 },
    { do: 'expire', which: 6 },
  ]
  t.equal(await play(steps), undefined)
})

await test('a tab that cannot ask when it hears of a login knows of it later', async (t) => {
  const all = Array.from({ length: 20 }, (_, which): Step => ({ do: 'deliver', which }))
  const steps: Step[] = [
    { do: 'log in', which: 0 },
    { do: 'land', which: 0 },
    ...all,
    { do: 'expire', which: 0 },
    ...all,
    { do: 'log in', which: 0 },
    { do: 'fail', which: 0 },
    { do: 'fail', which: 0 },
    { do: 'fail', which: 0 },
  ]
  t.equal(await play(steps), undefined)
})

await test('a leader that cannot ask when it hears of a session has the tab ask that told it', async (t) => {
  const steps: Step[] = [
    { do: 'deliver', which: 3 },
    { do: 'log in', which: 4 },
    { do: 'land', which: 1 },
    { do: 'land', which: 3 },
    { do: 'check', which: 6 },
    { do: 'vanish', which: 1 },
    { do: 'land', which: 3 },
    { do: 'fail', which: 3 },
  ]
  // Messages between tabs are slow enough only while many are under way.
  const all = await Promise.all(Array.from({ length: 60 }, () => play(steps)))
  t.same(new Set(all), new Set([undefined]))
})

await test('in the end, all tabs know the true state and show the data of its session, whatever the order of events', async (t) => {
  const scenarios = fc.array(fc.array(step, { maxLength: 25 }), { minLength: AT_ONCE, maxLength: AT_ONCE })
  await fc.assert(
    fc.asyncProperty(scenarios, async (all) => {
      const wrong = await Promise.all(all.map(async (steps) => [await play(steps), steps] as const))
      const found = wrong.find(([what]) => what !== undefined)
      if (found) throw new Error(`${found[0]} after ${JSON.stringify(found[1])}`)
    }),
    { numRuns: 2, endOnFailure: true },
  )
  t.pass()
})
