import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { versionOf } from '../../src/controls/control-document.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { DAY, isPaused, PAUSE, set, sharing, versionIn, type Own } from '../support/controls/shared-store.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { exactly } from '../support/exactly.ts'
import { until } from '../support/time/until.ts'

const OTHER_SECRET = 'another-secret-of-thirty-two-bytes-or-more'

await test('a pause that is told to an instance which started without the store outlives the return of the store', async (t) => {
  const { start } = await sharing(t)
  const other = await start()
  await set(other, PAUSE)
  await set(other, null)
  const own = { isCutOff: true }
  const controls = await start(own)
  t.match(await set(controls, PAUSE), { isShared: false })
  own.isCutOff = false
  await until(() => isPaused(other), 'the other instance has learnt of it')
  t.ok(isPaused(controls))
})

await test('a pause at an instance that is cut off for a moment reaches the others, though the store has not changed', async (t) => {
  const { start } = await sharing(t)
  const other = await start()
  await set(other, null)
  const own = { isCutOff: false }
  const controls = await start(own)
  own.isCutOff = true
  t.match(await set(controls, PAUSE), { isShared: false })
  own.isCutOff = false
  await until(() => isPaused(other), 'the other instance has learnt of it')
  t.ok(isPaused(controls))
})

await test('a month after orders went on, an instance that starts gives out a later version, which all take', async (t) => {
  const { start } = await sharing(t)
  const old = await start()
  await set(old, PAUSE)
  const lifted = await set(old, null, (now) => now - 31 * DAY)
  const fresh = await start()
  const paused = await set(fresh, PAUSE)
  t.match(paused, { isShared: true })
  t.ok(versionIn(paused) > versionIn(lifted))
  await until(() => isPaused(old), 'the old instance obeys')
  t.ok(isPaused(fresh))
})

await test('an instance obeys what it has read before it reports that', async (t) => {
  const { index, start } = await sharing(t)
  const report = Promise.withResolvers<'added'>()
  let hangs = false
  let hasBegun = false
  const first = await start()
  const own = { onChange: () => undefined as unknown }
  const second = await start({
    index: {
      add: (...args) => {
        hasBegun ||= hangs
        return hangs ? report.promise : index.add(...args)
      },
      list: (key) => index.list(key),
      remove: (...args) => index.remove(...args),
    } as SessionIndex,
    onChange: () => own.onChange(),
  })
  t.teardown(() => report.resolve('added'))
  let obeysSince = ''
  own.onChange = () => (obeysSince ||= isPaused(second) ? (hasBegun ? 'after the report' : 'before the report') : '')
  hangs = true
  await set(first, PAUSE)
  await until(() => hasBegun, 'it reports')
  t.equal(obeysSince, 'before the report')
})

for (const writer of ['this version', 'version 0.3'] as const) {
  await test(`a pause at an instance that cannot yet open the controls, which ${writer} wrote, outlives the arrival of its secret`, async (t) => {
    const { start, write03 } = await sharing(t)
    const other = await start({ secrets: new Changeable([OTHER_SECRET, SECRETS]) })
    let latest = 7
    if (writer === 'version 0.3') await write03([['orders', { version: latest, at: 0, value: null }]], OTHER_SECRET)
    // More than one change a second.
    else for (const value of [PAUSE, null, PAUSE, null, null]) latest = versionIn(await set(other, value))
    const secrets = new Changeable<readonly string[]>([SECRETS])
    const logged: unknown[] = []
    const late = await start({ secrets, logged })
    t.match(logged, exactly({ why: /^controls cannot be read/ }))
    const paused = await set(late, PAUSE)
    t.match(paused, { isShared: false })
    t.ok(versionIn(paused) > latest, 'it knows the version of what it cannot open')
    secrets.change([SECRETS, OTHER_SECRET])
    await until(() => isPaused(other), 'the other instance obeys')
    t.ok(isPaused(late))
    t.equal(logged.length, 1)
  })
}

await test('a pause of all that may replace controls which cannot be opened does so, and loses nothing that another instance knows', async (t) => {
  const { start, text } = await sharing(t)
  const secrets = new Changeable([OTHER_SECRET, SECRETS])
  const other = await start({ secrets })
  const notice = { message: 'Hello' }
  await other.change((version, now) => ['notice', { version, at: now, value: notice }])
  for (const value of [PAUSE, null]) await set(other, value)
  const late = await start({ logged: [] })
  const replace = (change: Parameters<typeof late.change>[0]) => late.change(change, 0, true)
  const before = await text()
  t.match(await replace(() => undefined), { is: 'refused' })
  t.equal(await text(), before, 'a change that is refused replaces nothing')
  const paused = await replace((version, now) => ['orders', { version, at: now, value: PAUSE }])
  t.match(paused, { isShared: true })
  t.same([late.isUnread, late.warnings], [false, []])
  await until(() => isPaused(other), 'the other instance obeys')
  await until(() => late.isUnread, 'it writes back what it knows, in words that the first one cannot read')
  t.equal(versionOf(other.document), versionIn(paused))
  t.ok(other.document.has('notice'))
  const stranger = await start({ secrets: new Changeable(['a-third-secret-of-thirty-two-bytes-or-more']), logged: [] })
  t.match(await set(stranger, null), { isShared: false })
  t.ok(isPaused(other), 'no other change replaces anything')
})

await test('a pause at an instance that knew no version wins over an older lift with a higher one, and not over a later lift', async (t) => {
  for (const [liftedAgoMs, expected] of [
    [60_000, true],
    [-5000, false],
  ] as const) {
    const { start, write03 } = await sharing(t)
    // Many changes a second have led here.
    const version = Math.floor(Date.now() / 1000) + 10_000
    await write03([['orders', { version, at: Date.now() - liftedAgoMs, value: null }]])
    const other = await start()
    const own = { isCutOff: true }
    const controls = await start(own)
    t.match(await set(controls, PAUSE), { isShared: false })
    own.isCutOff = false
    await until(() => versionOf(controls.document) >= version, 'it has read the controls')
    await until(() => versionOf(other.document) === versionOf(controls.document), 'both have the same')
    t.same([isPaused(controls), isPaused(other)], [expected, expected])
  }
})

await test('a pause that could not be written at first wins over an older lift with a higher version that comes meanwhile', async (t) => {
  const { start, write03 } = await sharing(t)
  const own: Own = { failedWrites: 0 }
  const controls = await start(own)
  t.match(await set(controls, PAUSE), { isShared: false })
  await until(() => Number(own.failedWrites) > 1, 'it has tried again')
  const version = Math.floor(Date.now() / 1000) + 10_000
  await write03([['orders', { version, at: Date.now() - 60_000, value: null }]])
  const other = await start()
  own.failedWrites = undefined
  await until(() => versionOf(other.document) > version || !isPaused(controls), 'it has read the lift')
  t.ok(isPaused(controls))
  await until(() => isPaused(other), 'the other instance obeys')
})
