import { test, type Test } from 'tap'
import { ApiError } from '../../client/dist/client.js'
import { ORDER, OrderingBrowser, REMEMBERED, TabStorage } from '../support/client/ordering-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'

// In a process of its own: it gives the whole process a browser's storage.

const browserOf = (t: Test): Promise<OrderingBrowser> => new OrderingBrowser().start(t)

await test('remember: a refused order is forgotten, unless it may have been made before the reload', async (t) => {
  const browser = await browserOf(t)
  browser.script = [[422, 'validation_failed']]
  t.match(await failure(browser.order()), { status: 422, outcome: undefined })
  t.equal(browser.tab.items.size, 0)
  const key = await browser.lose(t)
  browser.script = [[429, 'rate_limited']]
  t.match(await failure(browser.order()), { status: 429, outcome: 'unknown' })
  await browser.order()
  t.equal(browser.keys.at(-1), key)
})

await test('remember: the refusal of a proxy, or its redirect, says nothing about an order that may have been made before the reload', async (t) => {
  for (const status of [403, 429, 302]) {
    const browser = await browserOf(t)
    const key = await browser.lose(t)
    browser.script = [
      ['proxy', status],
      ['proxy', status],
    ]
    t.match(await failure(browser.order()), { problem: undefined, outcome: 'unknown' }, String(status))
    browser.script = []
    await browser.order()
    t.same(new Set(browser.keys), new Set([key]), String(status))
    t.equal(browser.tab.items.size, 0)
  }
})

await test('remember: the refusal of the trading service counts, although the order may have been made before the reload', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  browser.script = [[422, '']]
  t.match(await failure(browser.order()), { status: 422, outcome: undefined })
  t.equal(browser.keys.at(-1), key)
  t.equal(browser.tab.items.size, 0)
})

await test('remember: an order whose body is no text is not remembered, since it cannot be told from another one', async (t) => {
  const browser = await browserOf(t)
  for (const body of [new URLSearchParams({ amount: '5' }), new FormData(), new Blob(['{}'])]) {
    browser.script = ['cut', 'cut']
    t.match(await failure(browser.orderWith(body)), { outcome: 'unknown' })
    t.equal(browser.tab.items.size, 0)
  }
  t.equal(browser.keys.length, 6)
  t.equal(new Set(browser.keys).size, 3, 'each has a key of its own, also when it is repeated')
})

await test('remember: nothing is sent while the server cannot tell the session', async (t) => {
  const browser = await browserOf(t)
  browser.session = 'down'
  t.match(await failure(browser.order()), { code: 'not_sent', outcome: undefined })
  browser.session = { session: 'first' }
  const key = await browser.lose(t)
  browser.session = 'down'
  const before = browser.sent.length
  t.match(await failure(browser.order()), { status: 0, outcome: 'unknown' })
  t.equal(browser.sent.length, before)
  browser.session = 'none'
  const refused = { status: 401, code: 'login_required', problem: { code: 'login_required' }, outcome: 'unknown' }
  const error = await failure(browser.order())
  t.ok(error instanceof ApiError)
  t.match(error, refused)
  t.equal(browser.sent.length, before, 'a fresh key would make the order again if the user is logged in after all')
  await until(() => browser.state === 'anonymous', 'the page learns that nobody is logged in')
  browser.session = { session: 'first' }
  await browser.order()
  t.equal(browser.keys.at(-1), key)
})

await test('remember: a login in another tab, just after the package has asked for the session, does not make a kept order again', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  browser.session = 'none'
  browser.onSession = () => (browser.session = { session: 'second', subject: 'user-1' })
  const { length } = browser.sent
  t.match(await failure(browser.order()), { outcome: 'unknown' })
  t.equal(browser.sent.length, length, 'nothing was sent')
  await browser.order()
  t.not(browser.keys.at(-1), key, 'the page was told')
})

await test('remember: an instance that cannot read the session does not make a kept order again', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const { session } = browser
  browser.session = 'none'
  browser.onSession = () => (browser.session = session)
  await browser.order()
  t.same(new Set(browser.keys), new Set([key]))
})

await test('remember: without a session, isMade is asked about a kept order', async (t) => {
  for (const isMade of [true, false]) {
    const browser = await browserOf(t)
    const key = await browser.lose(t)
    browser.session = 'none'
    const { length } = browser.sent
    const order = browser.order(ORDER, { ...REMEMBERED, isMade: () => isMade })
    if (isMade) t.equal(await order, undefined)
    else t.match(await failure(order), { code: 'login_required', outcome: 'unknown' })
    t.equal(browser.sent.length, length)
    browser.session = { session: 'first', subject: 'user-1' }
    await browser.order()
    t.equal(browser.keys.at(-1) === key, !isMade)
  }
})

await test('remember: the same order under another name is another one, and what is no text is not remembered', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  browser.script = ['cut', 'cut']
  await failure(browser.order(ORDER, { remember: 'another' }))
  const other = browser.keys.at(-1)
  t.not(other, key)
  t.equal(browser.tab.items.size, 2)
  await browser.order()
  t.equal(browser.keys.at(-1), key)
  await browser.order(ORDER, { remember: 'another' })
  t.equal(browser.keys.at(-1), other)
  browser.script = ['cut', 'cut']
  await failure(browser.orderWith(new Blob([JSON.stringify(ORDER)])))
  t.equal(browser.tab.items.size, 0)
})

await test('remember: the key that follows one of another session is the same in every tab', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const duplicated = new TabStorage(browser.tab.items)
  browser.session = { session: 'second', subject: 'user-1' }
  await failure(browser.order())
  browser.script = ['cut', 'cut']
  await failure(browser.order())
  const following = browser.keys.at(-1)
  t.not(following, key)
  browser.tab = duplicated
  await failure(browser.order())
  await browser.order()
  t.equal(browser.keys.at(-1), following)
})
