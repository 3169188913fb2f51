import { test, type Test } from 'tap'
import { Market } from '../sandbox/upstream/market.ts'

/** A market whose timers fire when the test says so, and the epochs of its ticks since its history. */
function heldMarket(t: Test) {
  let now = 1_700_000_000_250
  let run: (() => void) | undefined
  let dueAt = 0
  t.intercept(Date, 'now', { value: () => Math.floor(now) })
  t.intercept(globalThis, 'setTimeout', {
    value: (callback: () => void, ms: number) => {
      run = callback
      dueAt = now + Math.max(1, ms)
    },
  })
  const market = new Market({ seed: 1, tickMs: 1000 })
  const [instrument] = market.instruments()
  const epochs: number[] = []
  instrument?.ticks.add(({ epoch }) => epochs.push(epoch))
  return {
    history: instrument?.history.map(({ epoch }) => epoch) ?? [],
    epochs,
    /** Lets the timer fire this much after it is due. */
    fire: (lateMs: number) => {
      now = dueAt + lateMs
      run?.()
    },
  }
}

const isConsecutive = (epochs: readonly number[]): boolean =>
  epochs.every((epoch, index) => index === 0 || epoch - (epochs[index - 1] ?? 0) === 1)

await test('one tick a second: every second has one tick, also when timers fire early or late', (t) => {
  const { history, epochs, fire } = heldMarket(t)
  for (let n = 0; n < 2400; n++) fire([-0.6, 0.4, 3, 120, 700, -0.2][n % 6] ?? 0)
  t.ok(epochs.length > 1500)
  t.ok(isConsecutive([...history, ...epochs]))
  t.end()
})

await test('after a pause of the process its ticks follow at once, after a sleep of the machine they are left out', (t) => {
  const { history, epochs, fire } = heldMarket(t)
  fire(5000)
  t.equal(epochs.length, 6)
  t.ok(isConsecutive([...history, ...epochs]))
  fire(3_600_000)
  t.equal(epochs.length, 7)
  t.ok((epochs.at(-1) ?? 0) - (epochs.at(-2) ?? 0) >= 3600)
  t.end()
})

await test('a machine that is slower than the ticks sets no timer for a time that has passed', (t) => {
  let now = 1_700_000_000_250
  const delays: number[] = []
  t.intercept(Date, 'now', { value: () => (now += 600) })
  t.intercept(globalThis, 'setTimeout', { value: (_callback: () => void, ms: number) => void delays.push(ms) })
  t.ok(new Market({ seed: 1, tickMs: 1000 }))
  t.same(delays, [0])
  t.end()
})
