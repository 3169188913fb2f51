import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import type { SharedControls } from '../../src/controls/shared-controls.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { loneControls } from '../support/controls/lone-controls.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

/** After this time without a reply an order waits no longer, unless its process stood still. */
const SILENT_MS = 900
const TOO_OLD_MS = 801

/** Lets time go by of which this process misses nothing. */
function awake(pass: (ms: number) => void, ms: number): void {
  for (let left = ms; left > 0; left -= 100) {
    pass(Math.min(left, 100))
    void standstill.count
  }
}

/** Controls that were read, and whose store replies to nothing from now on, or again. */
async function silencedControls(t: Parameters<typeof stoppedClocks>[0]) {
  const pass = stoppedClocks(t)
  void standstill.count
  const { start, store } = await loneControls()
  await start().set('Hello')
  const one = start()
  await one.controls.catchUp()
  const read = store.readMarked.bind(store)
  const replies = Promise.withResolvers<void>()
  store.readMarked = async (...args) => {
    await replies.promise
    return read(...args)
  }
  return { ...one, pass, other: start(), reply: replies.resolve, timers: new HeldTimers(t, 'setTimeout', SILENT_MS) }
}

/** Whether an order may go once what it waits for is over. */
const isFree = (controls: SharedControls, waited: Promise<void>): Promise<boolean> =>
  waited.then(() => !controls.isBehind)

await test('an order waits no longer for a store that is silent, as one master of a Cluster may be, and the last document stays in force', async (t) => {
  const { controls, pass, timers, reply, shown } = await silencedControls(t)
  awake(pass, TOO_OLD_MS)
  t.equal(controls.isBehind, true)
  const order = isFree(controls, controls.catchUp())
  t.equal(timers.size, 1)
  awake(pass, SILENT_MS)
  timers.run()
  t.equal(await order, true)
  t.same(shown(), { message: 'Hello' })
  awake(pass, TOO_OLD_MS)
  t.equal(controls.isBehind, true, 'the next order waits, too')
  const next = isFree(controls, controls.catchUp())
  reply()
  t.equal(await next, true)
  t.equal(timers.size, 0)
})

await test('after a standstill an order waits until the store has replied or has failed, since it may have missed a pause', async (t) => {
  const { controls, pass, timers, reply } = await silencedControls(t)
  pass(5000)
  const order = isFree(controls, controls.catchUp())
  t.equal(timers.size, 0)
  reply()
  t.equal(await order, true)
})

await test('a standstill while an order waits, or after it has waited in vain, has it wait for the reply', async (t) => {
  const { controls, pass, timers } = await silencedControls(t)
  awake(pass, TOO_OLD_MS)
  const order = isFree(controls, controls.catchUp())
  pass(5000)
  // What arrived meanwhile is read first.
  timers.run()
  timers.run()
  t.equal(await order, false)
  const { controls: other, pass: go, timers: held } = await silencedControls(t)
  awake(go, TOO_OLD_MS)
  const first = isFree(other, other.catchUp())
  held.run()
  t.equal(await first, true)
  go(600)
  t.equal(other.isBehind, true)
})

await test('nobody waits for the report of an instance, which another master of a Cluster may have, nor does the next poll', async (t) => {
  const pass = stoppedClocks(t)
  const polls = new HeldTimers(t, 'setTimeout', 300)
  const { start, seen, reporting } = await loneControls()
  const { controls, shown } = start()
  const replies = Promise.withResolvers<void>()
  reporting.before = () => replies.promise
  await controls.open()
  t.equal(seen.reports.length, 1)
  pass(5000)
  t.equal(controls.isBehind, true)
  await controls.catchUp()
  t.equal(controls.isBehind, false)
  await start().set('Hello')
  polls.run()
  await controls.catchUp()
  t.same(shown(), { message: 'Hello' })
  t.same([polls.size, seen.reports.length], [1, 1], 'one report after the other')
  replies.resolve()
  await controls.close()
})

await test('a report that a silent master has kept waiting is not made again for each poll meanwhile, and what follows it is of its own time', async (t) => {
  const pass = stoppedClocks(t)
  const polls = new HeldTimers(t, 'setTimeout', 300)
  const { start, seen, reporting } = await loneControls()
  const { controls } = start()
  await controls.open()
  pass(10_000)
  const silence = Promise.withResolvers<void>()
  reporting.before = () => silence.promise
  for (let poll = 0; poll < 200; poll++) {
    polls.run()
    await controls.catchUp()
    pass(300)
  }
  reporting.before = async () => undefined
  // A command to such a master fails in the end.
  silence.reject(new StoreUnavailable(new Error('no reply')))
  await setImmediate()
  t.same(seen.reports.length, 2, 'the first, and the one that has failed')
  await controls.catchUp()
  await setImmediate()
  t.match(await controls.reports(), [{ instance: 'one', seenAt: Date.now() }])
  await controls.close()
})
