import { test } from 'tap'
import type { Control } from '../../src/controls/control-document.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { loneControls } from '../support/controls/lone-controls.ts'
import { readBy03, versionIn } from '../support/controls/shared-store.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

/** Higher than any that a clock gives. */
const HIGH = 10_000_000_000

const lifted = (version: number, at: number): Control => ({ version, at, value: null })

await test('operators are warned of controls that were never read, or that cannot be read', async (t) => {
  const { start, put } = await loneControls()
  const { controls, cutOff, comeBack, logged } = start()
  cutOff()
  await controls.catchUp()
  t.same([controls.isUnread, controls.isBehind], [true, false])
  t.strictSame(controls.warnings, [
    'controls have not been read yet: this instance sends no orders and shows no notice',
  ])
  await comeBack()
  t.equal(controls.isUnread, false)
  t.strictSame(controls.warnings, [])
  cutOff()
  await controls.catchUp()
  t.equal(controls.isUnread, false, 'what was read last counts on')
  await comeBack()
  const unreadable =
    'controls cannot be read: no secret of this instance opens them (SESSION_SECRETS), or another version wrote them'
  for (const [mark, isUnread] of [
    ['mark', true],
    ['mark.0', false],
    ['mark.1', true],
  ] as const) {
    await put(`${mark} v1.no.text`)
    logged.length = 0
    for (const _ of [1, 2]) await controls.catchUp()
    t.equal(logged.length, Number(isUnread), 'once')
    t.equal(controls.isUnread, isUnread, mark)
    t.strictSame(controls.warnings, [isUnread ? `${unreadable}; this instance sends no orders` : unreadable])
  }
})

await test('a change gets a higher version than a document states that cannot be opened, and does not replace it', async (t) => {
  stoppedClocks(t)
  const { start, put, text, seen } = await loneControls()
  const byClock = Math.floor(Date.now() / 1000) + 1
  for (const [mark, version] of [
    ['ab_-9.10000000000', HIGH + 1],
    ['mark.999999999999999', 1e15],
    ['mark', byClock],
    ['mark.9999999999999999', byClock],
    ['.10000000000', byClock],
    ['a+b.10000000000', byClock],
    ['mark.10000000000x', byClock],
  ] as const) {
    const unreadable = `${mark} v1.no.text`
    await put(unreadable)
    const { set, shown, controls } = start()
    await controls.catchUp()
    t.strictSame(await set('Hello'), { is: 'changed', version, isShared: false }, mark)
    t.same(shown(), { message: 'Hello' })
    t.equal(await text(), unreadable)
  }
  t.same([seen.writes, seen.reports], [[], []])
})

await test('of a control that was changed without the store and of a lift with a higher version, the one more than a second later counts', async (t) => {
  const pass = stoppedClocks(t)
  for (const [afterMs, wins] of [
    [-60_000, true],
    [1000, true],
    [1001, false],
    [60_000, false],
  ] as const) {
    const { start, write } = await loneControls()
    const one = start()
    one.cutOff()
    await one.set('Hello')
    const at = Date.now()
    await write({ notice: lifted(HIGH, at + afterMs) })
    pass(5000)
    await one.comeBack()
    const control = one.controls.document.get('notice')
    t.strictSame(
      control,
      wins ? { version: HIGH + 1, at, value: { message: 'Hello' } } : lifted(HIGH, at + afterMs),
      `${afterMs} ms later`,
    )
    const other = start()
    await other.controls.catchUp()
    t.strictSame(other.controls.document.get('notice'), control)
  }
})

await test('a control that the store has already, or whose lift it has, is not told again', async (t) => {
  stoppedClocks(t)
  const { start, write } = await loneControls()
  const told = start()
  await told.set('Hello')
  await write({ notice: lifted(HIGH, Date.now() - 60_000) })
  await told.controls.catchUp()
  t.equal(told.shown(), null, 'the store had it')
  const late = start()
  late.cutOff()
  await late.set('Hello')
  // The reply to the write was lost, and no replica confirms the next one.
  await write(Object.fromEntries(late.controls.document))
  late.before = () => Promise.reject(new StoreUnavailable('not confirmed'))
  await late.comeBack()
  late.before = async () => undefined
  await write({ notice: lifted(HIGH, Date.now() - 60_000) })
  await late.controls.catchUp()
  t.equal(late.shown(), null, 'it has read so')
})

await test('once a later lift is known, the control before it is not told when an older lift comes', async (t) => {
  stoppedClocks(t)
  const { start, write } = await loneControls()
  const one = start()
  one.cutOff()
  await one.set('Hello')
  await write({ notice: lifted(HIGH, Date.now() + 5000) })
  await one.comeBack()
  await write({ notice: lifted(HIGH + 5, Date.now() - 60_000) })
  await one.controls.catchUp()
  t.strictSame(one.controls.document.get('notice'), lifted(HIGH + 5, Date.now() - 60_000))
})

await test('a control that is newer than the whole store keeps its version, and what the store has besides stays', async (t) => {
  stoppedClocks(t)
  for (const below of [1, 1000]) {
    const { start, write } = await loneControls()
    const one = start()
    one.cutOff()
    const at = Date.now() - 7
    const value = { message: 'Hello' }
    const changed = await one.controls.change((version) => ['notice', { version, at, value }])
    const version = versionIn(changed)
    await write({ notice: lifted(7, at), orders: lifted(version - below, at) })
    await one.comeBack()
    t.strictSame(Object.fromEntries(one.controls.document), {
      notice: { version, at, value },
      orders: lifted(version - below, at),
    })
  }
})

await test('a control that was changed without the store, and forgotten before it is back, holds up nothing', async (t) => {
  const { start, text } = await loneControls()
  const one = start()
  one.cutOff()
  await one.controls.change((version) => ['long ago', lifted(version, 0)])
  await one.set('Hello')
  t.same([...one.controls.document.keys()], ['notice', 'floor'])
  await one.comeBack()
  t.same(one.logged, [])
  t.same([...readBy03(await text()).keys()], ['floor', 'notice'])
})

await test('of two instances that change the controls at the same moment neither loses its change', async (t) => {
  const { start } = await loneControls()
  const [one, other] = [start(), start()]
  await Promise.all([one.controls.catchUp(), other.controls.catchUp()])
  let isFirst = true
  one.before = async () => {
    if (isFirst) await other.set('Hello')
    isFirst = false
  }
  t.match(await one.set('Maintenance', 'orders'), { isShared: true })
  await other.controls.catchUp()
  for (const { controls } of [one, other]) t.same([...controls.document.keys()].sort(), ['notice', 'orders'])
})

await test('a document with more than is kept is written without that, once', async (t) => {
  const pass = stoppedClocks(t)
  const { start, write, seen, text } = await loneControls()
  await write(
    Object.fromEntries(Array.from({ length: 1200 }, (_, at) => [`orders of ${at}`, lifted(at + 1, Date.now())])),
  )
  const { controls } = start()
  for (const _ of [1, 2]) {
    await controls.catchUp()
    t.equal(seen.writes.length, 1)
    pass(60_000)
  }
  t.equal(readBy03(await text()).size, 1001)
  t.equal(controls.document.size, 1001)
})
