import { test } from 'tap'
import { ordersOf } from '../../src/controls/control-document.ts'
import { drivenControls, sessionOf } from '../support/controls/driven-controls.ts'

const [ME, OTHER, NOBODY] = [sessionOf('me'), sessionOf('other'), sessionOf()]
const UNIDENTIFIED = { is: 'unidentified' }
const paused = (closing: boolean, until = Infinity, message?: string) => ({
  is: 'paused',
  message,
  until,
  closing,
})

await test('without controls orders may be sent, and pages get nothing', async (t) => {
  const { controls, poll } = await drivenControls(t)
  await poll()
  for (const session of [ME, NOBODY]) {
    t.equal(controls.verdictOn(session), undefined)
    t.strictSame(controls.stateFor(session), {})
  }
  t.strictSame(controls.stateFor(undefined), {})
})

await test('a pause of all holds for every session that is asked for, until its time has come or it is lifted', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  await set({ orders: { closing: true } })
  for (const session of [ME, NOBODY]) t.strictSame(controls.verdictOn(session), paused(true))
  await set({ orders: { closing: false, message: 'Maintenance', until: world.now + 1000 } })
  t.strictSame(controls.verdictOn(ME), paused(false, world.now + 1000, 'Maintenance'))
  world.now += 999
  t.ok(controls.verdictOn(ME))
  world.now += 1
  t.equal(controls.verdictOn(ME), undefined, 'though nobody has looked at the controls since')
  await set({ orders: { closing: true } })
  await set({ orders: null })
  t.equal(controls.verdictOn(ME), undefined)
})

await test('the pause of a subject holds for its own sessions alone', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  await set({ [ordersOf('me')]: { closing: false, message: 'Call us', until: world.now + 1000 } })
  t.strictSame(controls.verdictOn(ME), paused(false, world.now + 1000, 'Call us'))
  t.equal(controls.verdictOn(OTHER), undefined)
  t.strictSame(controls.verdictOn(NOBODY), UNIDENTIFIED)
  world.now += 1000
  t.equal(controls.verdictOn(ME), undefined)
  await set({ [ordersOf('me')]: null })
  t.equal(controls.verdictOn(NOBODY), undefined)
})

await test('while the controls were never read no orders are sent, and a pause that is known forbids closing', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  world.isUnread = true
  for (const session of [ME, NOBODY]) t.strictSame(controls.verdictOn(session), { is: 'unread' })
  await set({ orders: { closing: true, message: 'Maintenance' } })
  t.strictSame(controls.verdictOn(ME), paused(false, Infinity, 'Maintenance'))
  await set({ [ordersOf('me')]: { closing: true } })
  t.strictSame(controls.verdictOn(ME), paused(false))
  t.strictSame(controls.verdictOn(OTHER), { is: 'unread' })
  t.strictSame(controls.verdictOn(NOBODY), UNIDENTIFIED)
  world.isBehind = true
  t.strictSame(controls.verdictOn(OTHER), UNIDENTIFIED, 'it is read first')
  world.isBehind = world.isUnread = false
  t.equal(controls.verdictOn(OTHER), undefined)
})

await test('of two pauses the stricter counts, and the first message', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  const [soon, late] = [world.now + 1000, world.now + 2000]
  for (const [all, own, expected] of [
    [{ closing: true, until: soon }, { closing: true, until: late }, paused(true, late)],
    [{ closing: false, until: late }, { closing: true, until: soon }, paused(false, late)],
    [{ closing: true, until: soon }, { closing: false }, paused(false)],
    [
      { closing: true, message: 'for all' },
      { closing: true, message: 'own', until: soon },
      paused(true, Infinity, 'for all'),
    ],
    [{ closing: true }, { closing: true, message: 'own' }, paused(true, Infinity, 'own')],
  ] as const) {
    await set({ orders: all, [ordersOf('me')]: own })
    t.strictSame(controls.verdictOn(ME), expected)
  }
})

await test('while a subject is paused, a session without a known subject has to be identified, unless a pause of all is as strict', async (t) => {
  const { controls, set } = await drivenControls(t)
  for (const [all, own, expected] of [
    [{ closing: true }, { closing: true }, paused(true)],
    [{ closing: false }, { closing: false }, paused(false)],
    [{ closing: false }, { closing: true }, paused(false)],
    [{ closing: true }, { closing: false }, UNIDENTIFIED],
  ] as const) {
    await set({ orders: all, [ordersOf('me')]: own, [ordersOf('other')]: { closing: true } })
    t.strictSame(controls.verdictOn(NOBODY), expected)
  }
})

await test('a session that cannot be identified is paused as strictly as a subject is, without the words to that subject', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  await set({ [ordersOf('me')]: { closing: true, message: 'Call us', until: world.now + 1000 } })
  await controls.identify(NOBODY)
  t.strictSame(controls.verdictOn(NOBODY), paused(true))
  await set({ orders: { closing: true, message: 'for all' }, [ordersOf('me')]: { closing: false, message: 'Call us' } })
  t.strictSame(controls.verdictOn(NOBODY), paused(false, Infinity, 'for all'))
  t.strictSame(controls.stateFor(NOBODY), { orders_paused: { closing: true, message: 'for all' } })
})

await test('a session is identified by asking whose it is, and, while the controls are old, by reading them', async (t) => {
  const { controls, world, set, poll } = await drivenControls(t)
  await set({ [ordersOf('me')]: { closing: false } })
  world.isBehind = true
  t.strictSame(controls.verdictOn(ME), UNIDENTIFIED)
  let reads = 0
  controls.shared.catchUp = async () => void reads++
  await controls.identify(NOBODY)
  t.same([reads, world.asked], [1, []])
  Reflect.deleteProperty(controls.shared, 'catchUp')
  world.isBehind = false
  world.subject = 'me'
  await controls.identify(NOBODY)
  t.equal(world.asked[0], NOBODY)
  t.equal(reads, 1)
  t.strictSame(controls.verdictOn(NOBODY), paused(false))
  await poll()
  t.strictSame(controls.stateFor(NOBODY), { orders_paused: { closing: false } })
})

await test('a page gets the notice and its own pause while they last, with the end in whole seconds', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  await set({ notice: { message: 'Hello', until: 1_002_900 }, orders: { closing: true, until: 1_001_999 } })
  const notice = { message: 'Hello', until: 1002 }
  t.strictSame(controls.stateFor(ME), { notice, orders_paused: { until: 1001, closing: true } })
  t.strictSame(controls.stateFor(undefined), { notice })
  world.now = 1_001_999
  t.strictSame(controls.stateFor(ME), { notice })
  world.now = 1_002_900
  t.strictSame(controls.stateFor(ME), {})
  await set({ notice: { message: 'Hello' }, [ordersOf('me')]: { closing: false, message: 'Call us' } })
  t.strictSame(controls.stateFor(ME), {
    notice: { message: 'Hello' },
    orders_paused: { message: 'Call us', closing: false },
  })
  for (const session of [OTHER, NOBODY]) t.strictSame(controls.stateFor(session), { notice: { message: 'Hello' } })
})

await test('the time until a pause ends is told in whole seconds, one at least, where it is known', async (t) => {
  const { controls, world, set } = await drivenControls(t)
  for (const [ms, seconds] of [
    [2001, 3],
    [2000, 2],
    [1, 1],
  ] as const) {
    await set({ orders: { closing: true, until: world.now + ms } })
    const verdict = controls.verdictOn(ME)
    t.equal(verdict?.is === 'paused' && controls.secondsUntil(verdict), seconds)
    world.now += ms
    t.equal(verdict?.is === 'paused' && controls.secondsUntil(verdict), 1, 'it has just ended')
  }
  await set({ orders: { closing: true } })
  const verdict = controls.verdictOn(ME)
  t.equal(verdict?.is === 'paused' && controls.secondsUntil(verdict), undefined)
})
