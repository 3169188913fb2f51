import { test, type Test } from 'tap'
import { standstill } from '../../src/time/standstill.ts'
import { COUNT, Paper, shared } from '../support/controls/paper.ts'

/** Clocks that go on when a test says so, in steps that are no standstill. */
function stepped(t: Test) {
  // Whole, since fractions are rounded, and 2000 ms might be more than 2000.
  let now = Math.ceil(standstill.now()) + 1000
  t.intercept(performance, 'now', { value: () => now })
  t.intercept(Date, 'now', { value: () => now })
  standstill.now()
  const pass = (ms: number): void => {
    for (let left = ms; left > 0; left -= 400) {
      now += Math.min(left, 400)
      standstill.now()
    }
  }
  const stand = (): void => void (now += 1000)
  return { pass, stand, now: (): number => standstill.now() }
}

await test('what was read is known as of the question, or as of the answer for who waits for it, unless that took over 2 seconds', async (t) => {
  const { pass, now } = stepped(t)
  const paper = new Paper()
  for (const [isAsked, tookMs, knownMs] of [
    [undefined, 300, 0],
    [false, 300, 0],
    [true, 300, 300],
    [true, 2000, 2000],
    [true, 2001, 0],
  ] as const) {
    const { state } = shared(paper)
    t.equal(state.knownAt, -Infinity)
    paper.before = () => pass(tookMs)
    const askedAt = now()
    await state.read(isAsked)
    t.equal(state.knownAt - askedAt, knownMs, `${tookMs} ms`)
  }
})

await test('after a standstill nothing is known until the state was read, or somebody has asked a store that is away', async (t) => {
  const { pass, stand } = stepped(t)
  const paper = new Paper()
  const { state } = shared(paper)
  await state.read()
  for (const [isAway, isAsked, isKnown] of [
    [false, false, true],
    [true, false, false],
    [true, true, true],
  ] as const) {
    stand()
    t.equal(state.knownAt, -Infinity)
    paper.isAway = isAway
    paper.before = () => pass(300)
    const askedAt = standstill.now()
    await state.read(isAsked)
    const known = isAway ? askedAt + 300 : askedAt
    t.equal(
      state.knownAt,
      isKnown ? known : -Infinity,
      `${isAway ? 'away' : 'there'} and ${isAsked ? '' : 'not '}asked`,
    )
  }
})

await test('the clock of the store is told by its answer, or for what must not last too long by the question', async (t) => {
  const { pass } = stepped(t)
  for (const isAhead of [false, true]) {
    const paper = new Paper()
    const { state } = shared(paper, { ...COUNT, isAhead })
    paper.before = () => pass(200)
    await state.read()
    t.equal(state.now, isAhead ? 5200 : 5000)
    pass(100)
    t.equal(state.now, isAhead ? 5300 : 5100)
  }
})
