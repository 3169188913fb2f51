import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/store.ts'
import { loneControls } from '../support/controls/lone-controls.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

/** Higher than any that a clock gives. */
const HIGH = 10_000_000_000

await test('of a lift that was asked for without the store and of a pause the lift counts only if it came more than a second later', async (t) => {
  const pass = stoppedClocks(t)
  for (const tookMs of [0, 1500]) {
    for (const rank of ['lower', 'same', 'higher'] as const) {
      for (const [afterMs, wins] of [
        [-60_000, true],
        [-1001, true],
        [-1000, false],
        [-500, false],
        [800, false],
        [60_000, false],
      ] as const) {
        const { start, write, store } = await loneControls()
        const one = start()
        const at = Date.now()
        const read = store.readMarked.bind(store)
        store.readMarked = async () => {
          pass(tookMs)
          throw new StoreUnavailable(new Error('silent'))
        }
        // Several at once, so that its version is ahead of the time.
        await Promise.all([one.set('Hello'), one.set('Bye'), one.set(null)])
        t.equal(one.shown(), null)
        store.readMarked = read
        const own = one.controls.document.get('notice')?.version ?? 0
        const version = { lower: 1, same: own, higher: HIGH }[rank]
        const theirs = { version, at: at + afterMs, value: { message: 'Later' } }
        await write({ notice: theirs })
        await one.comeBack()
        const other = start()
        await other.controls.catchUp()
        for (const { controls } of [one, other]) {
          const control = controls.document.get('notice')
          const what = `${afterMs} ms later, after ${tookMs} ms, version ${rank}`
          if (wins) t.match(control, { at, value: null }, what)
          else t.strictSame(control, theirs, what)
        }
      }
    }
  }
})

await test('a lift without the store wins over the pause that was known when it was asked for, and a pause over its lift', async (t) => {
  stoppedClocks(t)
  const { start } = await loneControls()
  const [one, other] = [start(), start()]
  for (const message of ['Hello', null, 'Bye']) {
    const told = message === 'Hello' ? [other, one] : [one, other]
    await told[0]?.set('Before')
    await told[1]?.controls.catchUp()
    one.cutOff()
    await one.set('Meanwhile')
    await one.set(message)
    await other.set('of another control', 'orders')
    await one.comeBack()
    await other.controls.catchUp()
    for (const each of [one, other]) t.same(each.shown() ?? null, message === null ? null : { message })
  }
})
