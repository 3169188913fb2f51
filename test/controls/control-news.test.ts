import { test, type Test } from 'tap'
import { ordersOf, type Control } from '../../src/controls/control-document.ts'
import { drivenControls, sessionOf } from '../support/controls/driven-controls.ts'

const CLOSING = { closing: true }
const pause = (at: number): readonly [string, Control] => ['orders', { version: 1, at, value: CLOSING }]

/** What the metrics show. */
const expected = (version: number, all: number, subject: number, notice: number) => [
  `bff_controls_version ${version}`,
  `bff_orders_paused{scope="all"} ${all}`,
  `bff_orders_paused{scope="subject"} ${subject}`,
  `bff_notice_shown ${notice}`,
]

/** Counts what the listeners of controls are told. */
async function listening(t: Test) {
  const driven = await drivenControls(t)
  const { controls } = driven
  const told = { notice: 0, pauses: 0, mine: 0, unknown: 0 }
  const ends = [
    controls.onNotice(() => told.notice++),
    controls.onPauses(() => told.pauses++),
    controls.onPauseOf(sessionOf('me'), () => told.mine++),
    controls.onPauseOf(sessionOf(), () => told.unknown++),
  ]
  /** Returns what was told since the last call. */
  const news = (): unknown => {
    const since = Object.entries(told).filter(([, count]) => count > 0)
    Object.assign(told, { notice: 0, pauses: 0, mine: 0, unknown: 0 })
    return Object.fromEntries(since)
  }
  return { ...driven, news, ends }
}

await test('listeners are told once of what concerns them, and of nothing twice', async (t) => {
  const { set, poll, news, world } = await listening(t)
  const everybody = { pauses: 1, mine: 1, unknown: 1 }
  for (const [what, values, expected] of [
    ['a notice', { notice: { message: 'Hello' } }, { notice: 1 }],
    ['the same words again', { notice: { message: 'Hello' } }, {}],
    ['other words', { notice: { message: 'Bye' } }, { notice: 1 }],
    ['a pause of all', { notice: undefined, orders: CLOSING }, everybody],
    ['the same pause again', { notice: undefined, orders: CLOSING }, everybody],
    ['another pause of all', { notice: undefined, orders: { closing: false } }, everybody],
    ['the end of the notice', { notice: null, orders: undefined }, { notice: 1 }],
    ['the end of the pause', { orders: null }, { pauses: 1 }],
    ['a pause of somebody else', { [ordersOf('other')]: CLOSING }, { pauses: 1, unknown: 1 }],
    ['an own pause', { [ordersOf('other')]: undefined, [ordersOf('me')]: CLOSING }, everybody],
    ['the end of both', {}, { pauses: 1 }],
    ['a pause that is over before it is known', { orders: { closing: true, until: world.now } }, {}],
    ['something of a later version', { 'a later control': CLOSING }, { pauses: 1, unknown: 1 }],
  ] as const) {
    await set(values)
    t.strictSame(news(), expected, what)
    await poll()
    t.strictSame(news(), {}, `${what}, at the next poll`)
  }
})

await test('what ends by itself is told when its time has come', async (t) => {
  const { set, poll, news } = await listening(t)
  await set({
    notice: { message: 'Hello', until: 1_001_000 },
    orders: { closing: true, until: 1_002_000 },
    [ordersOf('me')]: { closing: true, until: 1_003_000 },
  })
  news()
  await poll(999)
  t.strictSame(news(), {})
  await poll(1)
  t.strictSame(news(), { notice: 1 })
  for (const expected of [{ pauses: 1 }, { pauses: 1 }, {}]) {
    await poll(1000)
    t.strictSame(news(), expected)
  }
})

await test('a pause with the version of another, given out by an instance that was cut off, has begun at its own time', async (t) => {
  const { world, poll, news } = await listening(t)
  world.document = new Map([pause(1)])
  await poll()
  news()
  world.document = new Map([pause(2)])
  await poll()
  t.strictSame(news(), { pauses: 1, mine: 1, unknown: 1 })
  world.document = new Map([pause(2), ['notice', { version: 2, at: 3, value: { message: 'Hello' } }]])
  await poll()
  t.strictSame(news(), { notice: 1 })
})

await test('a session whose subject could not be told hears of each pause, and one that was identified of its own', async (t) => {
  const { controls, set, world, news } = await listening(t)
  await controls.identify(sessionOf())
  await set({ [ordersOf('other')]: CLOSING })
  t.strictSame(news(), { pauses: 1, unknown: 1 }, 'it failed')
  world.subject = 'somebody'
  await controls.identify(sessionOf())
  await set({ [ordersOf('other')]: CLOSING })
  t.strictSame(news(), { pauses: 1 })
  await set({ [ordersOf('other')]: undefined, [ordersOf('somebody')]: CLOSING })
  t.strictSame(news(), { pauses: 1, unknown: 1 })
})

await test('a listener that has left is told nothing', async (t) => {
  const { set, news, ends } = await listening(t)
  for (const end of ends) end()
  await set({ notice: { message: 'Hello' }, orders: CLOSING, [ordersOf('me')]: CLOSING })
  t.strictSame(news(), {})
})

await test('metrics show the version, and which pauses and notices are in force', async (t) => {
  const { controls, registry, world, set } = await drivenControls(t)
  const shown = async () => {
    const lines = (await registry.metrics()).split('\n')
    return lines.filter((line) => /^bff_(controls_version|orders_paused|notice_shown)\b/.test(line))
  }
  t.same(await shown(), expected(0, 0, 0, 0))
  await set({ orders: CLOSING, [ordersOf('me')]: CLOSING, [ordersOf('other')]: CLOSING, notice: { message: 'Hello' } })
  t.same(await shown(), expected(4, 1, 2, 1))
  await set({ orders: null, [ordersOf('me')]: undefined, [ordersOf('other')]: { closing: true, until: world.now } })
  t.same(await shown(), expected(6, 0, 1, 0))
  t.ok(controls.metrics)
})
