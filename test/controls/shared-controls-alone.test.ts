import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { versionOf } from '../../src/controls/control-document.ts'
import { CONTROLLED_KEY } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { loneControls } from '../support/controls/lone-controls.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const TEN_YEARS = 3650 * 86_400_000

await test('a change gets a version by the clock, or the next one, and reaches the store at once', async (t) => {
  stoppedClocks(t)
  const { start, seen, text } = await loneControls()
  const { controls, set, shown } = start()
  const version = Math.floor(Date.now() / 1000) + 1
  t.strictSame(await set('Hello'), { is: 'changed', version, isShared: true })
  t.same(shown(), { message: 'Hello' })
  t.strictSame(await set('Bye'), { is: 'changed', version: version + 1, isShared: true })
  t.strictSame(controls.document.get('notice'), { version: version + 1, at: Date.now(), value: { message: 'Bye' } })
  t.equal(controls.now, Date.now())
  const [first, second] = seen.writes
  t.match(first?.text, new RegExp(`^[\\w-]{16}\\.${version} v1\\.`))
  t.match(second?.text, new RegExp(`^[\\w-]{16}\\.${version + 1} v1\\.`))
  t.same([first?.before, second?.before], [undefined, first?.text])
  t.equal(second?.until, Date.now() + TEN_YEARS)
  t.equal(await text(), second?.text)
  const other = start()
  await other.controls.catchUp()
  t.same(other.shown(), { message: 'Bye' })
  t.equal(seen.writes.length, 2, 'the store lacks nothing')
})

await test('a change that must not be made is refused, and changes nothing', async (t) => {
  const { start, seen } = await loneControls()
  const { controls, set, shown } = start()
  await set('Hello')
  t.strictSame(await controls.change(() => undefined), { is: 'refused' })
  t.same(shown(), { message: 'Hello' })
  t.equal(seen.writes.length, 1)
})

await test('a change without the store counts here, and reaches it later; a fault of this program is thrown', async (t) => {
  const { start, text } = await loneControls()
  const one = start()
  one.cutOff()
  t.match(await one.set('Hello'), { is: 'changed', isShared: false })
  t.same(one.shown(), { message: 'Hello' })
  t.equal(await text(), '')
  await one.comeBack()
  const other = start()
  await other.controls.catchUp()
  t.same(other.shown(), { message: 'Hello' })
  one.fault = new TypeError('planted')
  await t.rejects(one.set('Bye'), /planted/)
})

await test('what has been read is not read again, and who has nothing asks for all', async (t) => {
  const { start, seen } = await loneControls()
  const { controls, set, news } = start()
  t.equal(news, 0)
  await controls.catchUp()
  await set('Hello')
  await controls.catchUp()
  t.same(seen.marks, ['', ...seen.writes.map(({ text }) => text.split(' ')[0])])
})

await test('each exchange with the store is told, since controls end by themselves', async (t) => {
  const { start } = await loneControls()
  const one = start()
  for (const expected of [1, 2]) {
    await one.controls.catchUp()
    t.equal(one.news, expected)
  }
  await Promise.all([one.controls.catchUp(), one.controls.catchUp()])
  t.equal(one.news, 3, 'orders that arrive together share a read')
})

await test('the document is too old for an order 800 ms after it was read, and is not while it is read again', async (t) => {
  const pass = stoppedClocks(t)
  const { start } = await loneControls()
  const { controls } = start()
  t.equal(controls.isBehind, true, 'it was never read')
  await controls.catchUp()
  for (const [ms, expected] of [
    [400, false],
    [400, false],
    [1, true],
  ] as const) {
    pass(ms)
    t.equal(controls.isBehind, expected)
  }
  await controls.catchUp()
  t.equal(controls.isBehind, false)
})

await test('an opened instance reads at once, then every 300 ms, until it is closed, and takes its report back', async (t) => {
  const timers = new HeldTimers(t, 'setTimeout', 300)
  const { start, seen } = await loneControls()
  const { controls } = start()
  await controls.open()
  t.same([seen.marks.length, timers.size], [1, 1])
  timers.run()
  await controls.catchUp()
  t.same([seen.marks.length, timers.size], [2, 1])
  t.equal(seen.reports.length, 1)
  await controls.close()
  t.equal(timers.size, 0)
  t.match(seen.removed, [[CONTROLLED_KEY, [/^[\w-]{12}$/]]])
})

await test('an open instance reads as soon as the store is back, whatever was changed meanwhile', async (t) => {
  const { start, seen } = await loneControls()
  const one = start()
  one.changed(undefined)
  await setImmediate()
  t.equal(seen.marks.length, 0, 'not before it is open')
  await one.controls.open()
  one.cutOff()
  await start().set('Hello')
  const { length } = seen.marks
  one.fault = undefined
  one.changed('another key')
  await setImmediate()
  t.same([seen.marks.length, one.shown()], [length, undefined])
  one.changed(undefined)
  await setImmediate()
  t.same([seen.marks.length, one.shown()], [length + 1, { message: 'Hello' }])
  await one.controls.close()
  one.changed(undefined)
  await setImmediate()
  t.equal(seen.marks.length, length + 1)
})

await test('an instance is open once it has read, and a close waits for the read that is under way', async (t) => {
  const { start, store, seen } = await loneControls()
  await start().set('Hello')
  const read = store.readMarked.bind(store)
  let gate = Promise.withResolvers<void>()
  store.readMarked = async (...args) => {
    await gate.promise
    return read(...args)
  }
  const { controls, shown } = start()
  let isOpen = false
  const opened = controls.open().then(() => (isOpen = true))
  await setImmediate()
  t.equal(isOpen, false)
  gate.resolve()
  await opened
  t.same(shown(), { message: 'Hello' })
  gate = Promise.withResolvers<void>()
  const reading = controls.catchUp()
  const closed = controls.close()
  await setImmediate()
  t.equal(seen.removed.length, 0)
  gate.resolve()
  await Promise.all([reading, closed])
  t.equal(seen.removed.length, 1)
})

await test('an instance reports the version that it obeys, and again when the store has another document', async (t) => {
  const { start, seen, write } = await loneControls()
  const one = start()
  await one.controls.catchUp()
  await one.set('Hello')
  await one.controls.catchUp()
  const version = versionOf(one.controls.document)
  t.same(seen.reports, ['0@one', `${version}@one`])
  await start().set('Bye')
  await one.controls.catchUp()
  t.same(seen.reports.slice(2), [`${version + 1}@one`])
  await write(Object.fromEntries(one.controls.document))
  for (const _ of [1, 2]) await one.controls.catchUp()
  t.same(seen.reports.slice(3), [`${version + 1}@one`], 'the store may have forgotten the reports, too')
})

await test('the reports of all are read after an own one, by what the store has at that moment', async (t) => {
  const { start, seen } = await loneControls()
  const one = start()
  t.equal(one.controls.instance, 'one')
  const { version } = (await start().set('Hello')) as { readonly version: number }
  const reports = await one.controls.reports()
  t.same(seen.reports, [`${version}@one`])
  t.match(reports, [{ instance: 'one', version }])
  one.cutOff()
  await t.rejects(one.controls.reports(), StoreUnavailable)
})

await test('an instance is listed although the master that has the document is far behind the one that has the reports', async (t) => {
  stoppedClocks(t)
  const { start } = await loneControls()
  const one = start()
  one.aheadMs = -60_000
  t.match(await one.controls.reports(), [{ instance: 'one', seenAt: Date.now() }])
})

await test('a store that is away is no fault; any other fault has one line, until another comes', async (t) => {
  const { start } = await loneControls()
  const one = start()
  one.cutOff()
  await one.controls.catchUp()
  t.same(one.logged, [])
  const [err, other] = [new TypeError('planted'), new TypeError('another')]
  one.fault = err
  await one.controls.catchUp()
  await one.controls.catchUp()
  const line = 'controls could not be read, written or reported'
  t.same(one.logged, [[{ err }, line]])
  one.fault = other
  await one.controls.catchUp()
  t.same(one.logged.slice(1), [[{ err: other }, line]])
})
