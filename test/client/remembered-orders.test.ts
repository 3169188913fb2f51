import { test, type Test } from 'tap'
import { ApiError } from '../../client/dist/client.js'
import { ORDER, OrderingBrowser, REMEMBERED, TabStorage } from '../support/client/ordering-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { exactly } from '../support/exactly.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

// In a process of its own: it gives the whole process a browser's storage.

const browserOf = (t: Test): Promise<OrderingBrowser> => new OrderingBrowser().start(t)
const OTHER_SESSION = { outcome: 'unknown', cause: { message: 'the key belongs to another session' } }

await test('once() without isMade: a call whose answer is lost is sent once more with the same key', async (t) => {
  const browser = await browserOf(t)
  browser.script = ['cut']
  t.match(await browser.order(ORDER, {}), { status: 200 })
  t.equal(new Set(browser.keys).size, 1)
  t.equal(browser.sent.length, 2)
  browser.script = ['cut', 'cut']
  t.match(await failure(browser.order(ORDER, {})), { status: 0, outcome: 'unknown' })
  t.equal(browser.sent.length, 4)
  browser.script = [[409, 'outcome_unknown']]
  t.match(await failure(browser.order(ORDER, {})), { problem: { code: 'outcome_unknown' } })
  t.equal(browser.sent.length, 5)
  t.equal(browser.tab.items.size, 0, 'it is not remembered')
})

await test('remember: after a reload in the same session the same order has the same key, until its outcome is known', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const kept = JSON.stringify([...browser.tab.items])
  t.match(kept, key)
  t.notMatch(kept, /1234|CR100|token|user-1/)
  browser.script = ['cut', 'cut']
  await failure(browser.order())
  t.match(await browser.order(), { status: 200 })
  t.same(new Set(browser.keys), new Set([key]))
  t.equal(browser.tab.items.size, 0)
  await browser.order()
  t.not(browser.keys.at(-1), key, 'the next order is another one')
})

await test('remember: an order that is made twice at the same moment, as by a double click, has one key', async (t) => {
  const browser = await browserOf(t)
  await Promise.all([browser.order(), browser.order()])
  t.equal(new Set(browser.keys).size, 1)
  t.equal(browser.tab.items.size, 0)
})

await test('remember: another order has another key, and each is remembered', async (t) => {
  const browser = await browserOf(t)
  const first = await browser.lose(t)
  const second = await browser.lose(t, { ...ORDER, amount: 1234.57 })
  t.not(second, first)
  await browser.order()
  t.equal(browser.keys.at(-1), first)
  await browser.order({ ...ORDER, amount: 1234.57 })
  t.equal(browser.keys.at(-1), second)
})

await test('remember: in another session of the user the key is not sent, and the page is told', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  browser.session = { session: 'second', subject: 'user-1' }
  const before = browser.sent.length
  const error = await failure(browser.order())
  t.ok(error instanceof ApiError)
  t.match(error, { outcome: 'unknown', cause: OTHER_SESSION })
  t.equal(browser.sent.length, before, 'nothing was sent')
  await browser.order()
  t.notOk(browser.sent.slice(before).some(([sent]) => sent === key))
})

for (const isMade of [true, false]) {
  await test(`remember: in another session isMade is asked, and says ${isMade}`, async (t) => {
    const browser = await browserOf(t)
    const key = await browser.lose(t)
    browser.session = { session: 'second', subject: 'user-1' }
    const before = browser.sent.length
    const asked: unknown[] = []
    const answer = await browser.order(ORDER, { ...REMEMBERED, isMade: (error) => asked.push(error) > 0 && isMade })
    t.match(asked, exactly(OTHER_SESSION))
    t.equal(answer === undefined, isMade)
    const sent = browser.keys.slice(before)
    t.equal(sent.length, isMade ? 0 : 1)
    t.notOk(sent.includes(key))
    t.equal(browser.tab.items.size, 0)
  })
}

await test('remember: with another subject, or an unknown one, the order is forgotten, and the next user learns nothing of it', async (t) => {
  for (const [first, next] of [
    ['user-1', 'user-2'],
    ['user-1', undefined],
    [undefined, 'user-1'],
    [undefined, undefined],
  ]) {
    const browser = await browserOf(t)
    browser.session = { session: 'first', ...(first && { subject: first }) }
    const key = await browser.lose(t)
    browser.session = { session: 'second', ...(next && { subject: next }) }
    t.match(await browser.order(ORDER, { ...REMEMBERED, isMade: () => t.fail('asked') }), { status: 200 })
    t.notOk(browser.keys.at(-1)?.startsWith(key))
  }
})

await test('remember: another user logs in just after the session was asked for: the key of the one before is not sent', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const { length } = browser.sent
  browser.onSession = () => (browser.session = { session: 'second', subject: 'user-2' })
  t.match(await failure(browser.order()), OTHER_SESSION)
  t.equal(browser.sent.length, length)
  await browser.order()
  t.not(browser.keys.at(-1), key)
})

await test('remember: without a subject the session alone decides', async (t) => {
  const browser = await browserOf(t)
  browser.session = { session: 'first' }
  const key = await browser.lose(t)
  await browser.order()
  t.equal(browser.keys.at(-1), key)
})

await test('remember: a key is not sent after an hour, when the server may have forgotten it', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 3_700_000 })
  const before = browser.sent.length
  t.match(await failure(browser.order()), { outcome: 'unknown' })
  t.equal(browser.sent.length, before)
  await browser.order()
  t.not(browser.keys.at(-1), key)
})

await test('remember: an order is not sent if the machine slept while the page asked whose session it is', async (t) => {
  const sleep = timeAhead(t)
  for (const [sleptMs, sent] of [
    [15_000, 1],
    [25_000, 0],
    [-25_000, 0],
  ] as const) {
    const browser = await browserOf(t)
    browser.onSession = () => {
      browser.onSession = () => undefined
      sleep(sleptMs)
    }
    const order = browser.order()
    if (sent === 1) t.match(await order, { status: 200 })
    else t.match(await failure(order), { code: 'not_sent', outcome: undefined })
    t.equal(browser.sent.length, sent, `${sleptMs} ms`)
    t.equal(browser.tab.items.size, 0)
  }
})

await test('remember: a duplicated tab sends the same keys, so that the server sends the order once', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const tabs = [browser.tab, new TabStorage(browser.tab.items)] as const
  /** Makes the order in both tabs. @returns the keys that they have sent */
  const inBoth = async (order: () => Promise<unknown>): Promise<(string | undefined)[]> => {
    const before = browser.sent.length
    for (browser.tab of tabs) await order()
    return browser.keys.slice(before)
  }
  browser.script = ['cut', 'cut', 'cut', 'cut']
  t.same(new Set(await inBoth(() => failure(browser.order()))), new Set([key]), 'after a reload')
  browser.session = { session: 'second', subject: 'user-1' }
  t.same(await inBoth(() => failure(browser.order())), [], 'in another session')
  const [first, second, ...others] = await inBoth(() => browser.order())
  t.same([second, others], [first, []], 'the order is made again in both, with one key')
  t.not(first, key)
})

await test('remember: an order whose outcome the server will never know can be made again, with one key in all tabs', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const tabs = [browser.tab, new TabStorage(browser.tab.items)] as const
  for (browser.tab of tabs) {
    browser.script = [[409, 'outcome_unknown']]
    t.match(await failure(browser.order()), { problem: { code: 'outcome_unknown' } })
    t.equal(browser.keys.at(-1), key)
  }
  for (browser.tab of tabs) await browser.order()
  const [first, second] = browser.keys.slice(-2)
  t.equal(first, second)
  t.not(first, key)
})

await test('remember: a page that may not use the storage makes its orders all the same', async (t) => {
  const browser = await browserOf(t)
  Object.defineProperty(globalThis, 'sessionStorage', {
    configurable: true,
    get: () => {
      throw new Error('SecurityError')
    },
  })
  browser.script = ['cut']
  t.match(await browser.order(), { status: 200 })
  t.equal(new Set(browser.keys).size, 1)
})

await test('an order that was sent keeps its key when it is sent again, whatever happens meanwhile', async (t) => {
  await t.test('an equal order is answered, and so forgotten', async (t) => {
    const browser = await browserOf(t)
    browser.script = [[200, ''], 'cut']
    await Promise.all([browser.order(), browser.order()])
    t.equal(browser.keys.length, 3)
    t.equal(new Set(browser.keys).size, 1, browser.keys.join(' '))
  })
  await t.test('the session ends: the order stays remembered, and is asked about in the next one', async (t) => {
    const browser = await browserOf(t)
    await browser.lose(t)
    browser.script = ['cut', [401, 'login_required']]
    browser.onCut = () => (browser.session = 'none')
    t.match(await failure(browser.order()), { outcome: 'unknown' })
    const { length } = browser.sent
    browser.session = { session: 'second', subject: 'user-1' }
    t.match(await failure(browser.order()), { outcome: 'unknown' })
    t.equal(browser.sent.length, length, 'it is not sent')
  })
  await t.test('nothing can be stored and the server is away: the outcome is unknown', async (t) => {
    const browser = await browserOf(t)
    const forbidden = new TabStorage()
    forbidden.getItem = forbidden.setItem = () => {
      throw new Error('SecurityError')
    }
    browser.tab = forbidden
    browser.script = ['cut']
    browser.onCut = () => (browser.session = 'down')
    t.match(await failure(browser.order()), { outcome: 'unknown' })
  })
})
